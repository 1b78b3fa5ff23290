// laneway-serve: serves language models, an engine for each (docs/generation.md). `laneway serve`
// starts it through Laneway; by itself it is an ordinary CUDA program, whose engines use whatever
// libcuda.so.1 the library path gives.
//
//     laneway-serve [FLAGS] MODEL...    serves until SIGTERM or SIGINT
//     laneway-serve --engine            an engine: for laneway-serve itself
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "serve/engine/child_process.h"
#include "serve/front/front.h"
#include "serve/llm/engine/engine.h"
#include "serve/llm/serve_flags.h"

namespace serve {
namespace {

constexpr int kUsageExitCode = 2;

int Fail(int code, const std::string& sentence) {
  std::fprintf(stderr, "laneway-serve: %s\n", sentence.c_str());
  return code;
}

int Main(int count, char** words) {
  if (count == 2 && std::string(words[1]) == "--engine")
    return llm::RunEngine(engine::kEngineSocket, engine::kPassedDescriptor);
  CLI::App app("Serves language models.", "laneway-serve");
  llm::ServeOptions options;
  std::vector<std::string> paths;
  app.add_option("MODEL", paths, "a .gguf file, or a directory with config.json")->required();
  llm::AddServeFlags(&app, &options);
  try {
    app.parse(count, words);
  } catch (const CLI::Success& wanted) {
    return app.exit(wanted);
  } catch (const CLI::ParseError& error) {
    return Fail(kUsageExitCode, std::string(error.what()) + "; see laneway-serve --help");
  }
  front::Front front;
  if (const absl::Status opened = front.Open(options, paths); !opened.ok())
    return Fail(1, std::string(opened.message()));
  front.Run();
  return 0;
}

}  // namespace
}  // namespace serve

int main(int count, char** words) { return serve::Main(count, words); }
