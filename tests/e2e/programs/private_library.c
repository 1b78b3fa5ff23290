// Found by find_runpath alone.
__attribute__((visibility("default"))) int E2eNumber(void);
int E2eNumber(void) { return 17; }
