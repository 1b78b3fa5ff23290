// The counts of a model's batcher and engine as series of the metrics page. The names are vLLM's
// behind a prefix of our own, so that dashboards need another prefix alone. Thread safety: none.
#pragma once

#include <string>

#include "serve/llm/generation/engine_generator.h"
#include "serve/metrics/registry.h"

namespace serve::front {

class ModelMetrics {
 public:
  // The registry outlives the object.
  ModelMetrics(metrics::Registry* registry, const std::string& model);
  // To be called before the page is read.
  void Update(const llm::EngineGenerator& engine);

 private:
  // A counter that is kept elsewhere.
  struct Mirror {
    metrics::Counter* counter = nullptr;
    void Set(double total) { counter->Add(total - counter->value()); }
  };

  metrics::Gauge* running_;
  metrics::Gauge* waiting_;
  metrics::Gauge* kv_usage_;
  metrics::Gauge* ready_;
  Mirror preemptions_;
  Mirror prefix_queries_;
  Mirror prefix_hits_;
  Mirror computed_;
  Mirror recomputed_;
  Mirror restarts_;
  Mirror steps_;
  Mirror step_seconds_;
};

}  // namespace serve::front
