// A libcuda.so.1 that a run path leads to, where a vendor's would lie. It has no device.
__attribute__((visibility("default"))) int cuInit(unsigned flags);
int cuInit(unsigned flags) {
  (void)flags;
  return 100;
}
