// liblaneway_nvtx.so: NVTX ranges as iterations. `laneway run --iterations-from=nvtx` names it in
// NVTX_INJECTION64_PATH, and every module of the program that uses NVTX calls
// InitializeInjectionNvtx2 (nvToolsExt.h describes the interface; nothing else of NVTX is used).
//
// An iteration begins where a thread opens a range while it has none open; with
// LANEWAY_NVTX_RANGE=TEXT, where it opens a range whose message begins with TEXT, at any depth.
// Without the client in the process it does nothing.
// Thread safety: any thread.
#include <dlfcn.h>
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtSync.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

namespace {

void (*mark)();           // set before any range reaches us
const char* wanted = "";  // LANEWAY_NVTX_RANGE
thread_local int depth = 0;
std::atomic<nvtxRangeId_t> last_range{0};

void Begin(const char* message) {
  const bool begins =
      *wanted == 0 ? depth == 0
                   : message != nullptr && std::strncmp(message, wanted, std::strlen(wanted)) == 0;
  if (begins && mark != nullptr) mark();
}

const char* MessageOf(const nvtxEventAttributes_t* attributes) {
  if (attributes == nullptr || attributes->messageType != NVTX_MESSAGE_TYPE_ASCII) return nullptr;
  return attributes->message.ascii;
}

int NVTX_API PushA(const char* message) {
  Begin(message);
  return depth++;
}
int NVTX_API PushEx(const nvtxEventAttributes_t* attributes) {
  return PushA(MessageOf(attributes));
}
int NVTX_API DomainPushEx(nvtxDomainHandle_t, const nvtxEventAttributes_t* attributes) {
  return PushA(MessageOf(attributes));
}
int NVTX_API Pop() { return depth > 0 ? --depth : NVTX_NO_PUSH_POP_TRACKING; }
int NVTX_API DomainPop(nvtxDomainHandle_t) { return Pop(); }

// A process range may end on another thread: it opens no depth.
nvtxRangeId_t NVTX_API StartA(const char* message) {
  Begin(message);
  return last_range.fetch_add(1) + 1;
}
nvtxRangeId_t NVTX_API StartEx(const nvtxEventAttributes_t* attributes) {
  return StartA(MessageOf(attributes));
}
nvtxRangeId_t NVTX_API DomainStartEx(nvtxDomainHandle_t, const nvtxEventAttributes_t* attributes) {
  return StartA(MessageOf(attributes));
}

template <class Function>
void Set(NvtxFunctionTable table, unsigned size, unsigned index, Function function) {
  if (index < size && table[index] != nullptr)
    *table[index] = reinterpret_cast<NvtxFunctionPointer>(function);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    NvtxGetExportTableFunc_t get_export_table) {
  mark = reinterpret_cast<void (*)()>(dlsym(RTLD_DEFAULT, "laneway_nvtx_range"));
  if (const char* const text = std::getenv("LANEWAY_NVTX_RANGE"); text != nullptr) wanted = text;
  const NvtxExportTableCallbacks* const callbacks =
      static_cast<const NvtxExportTableCallbacks*>(get_export_table(NVTX_ETID_CALLBACKS));
  if (mark == nullptr || callbacks == nullptr) return 0;
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &size) == 0) return 0;
  Set(table, size, NVTX_CBID_CORE_RangePushA, &PushA);
  Set(table, size, NVTX_CBID_CORE_RangePushEx, &PushEx);
  Set(table, size, NVTX_CBID_CORE_RangePop, &Pop);
  Set(table, size, NVTX_CBID_CORE_RangeStartA, &StartA);
  Set(table, size, NVTX_CBID_CORE_RangeStartEx, &StartEx);
  if (callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) == 0) return 1;
  Set(table, size, NVTX_CBID_CORE2_DomainRangePushEx, &DomainPushEx);
  Set(table, size, NVTX_CBID_CORE2_DomainRangePop, &DomainPop);
  Set(table, size, NVTX_CBID_CORE2_DomainRangeStartEx, &DomainStartEx);
  return 1;
}
