// A session's file while the driver knows it: the device writes completion words there, and copies
// to and from the staging area.
//
// Thread safety: one session's thread; the file's words are for any thread.
#pragma once

#include <memory>
#include <string>

#include "daemon/worker/session.h"
#include "ipc/session_file.h"

namespace worker {

class RegisteredFile {
 public:
  // `environment` outlives this object.
  RegisteredFile(const Environment& environment, ipc::SessionFile file)
      : environment_(environment), file_(std::make_shared<ipc::SessionFile>(std::move(file))) {}
  RegisteredFile(const RegisteredFile&) = delete;

  // Makes the file's pages the driver's. False: `error` holds a sentence. REQUIRES: a context is
  // current on this thread.
  bool Register(std::string* error);
  // The driver lets the pages go, later where that may wait for the whole context. The mapping
  // lives until then, also after this object's end.
  void LetGo();

  ipc::SessionFile* get() const { return file_.get(); }
  ipc::SessionPage* page() const { return file_->page(); }

 private:
  const Environment& environment_;
  const std::shared_ptr<ipc::SessionFile> file_;
  bool registered_ = false;
};

}  // namespace worker
