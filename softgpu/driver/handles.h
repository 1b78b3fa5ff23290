// From what a program passes in to live objects: the first lines of almost every api_*.cc function.
//
// Every function returns the code that CUDA documents for a bad argument, and logs why.
#pragma once

#include <cuda.h>

#include <memory>

namespace softgpu {

class Context;
class Device;
class Event;
class Function;
class Stream;

CUresult CurrentContext(std::shared_ptr<Context>* context);
// `handle` or, when it is null, the current context.
CUresult FindContext(CUcontext handle, std::shared_ptr<Context>* context);
CUresult FindDevice(CUdevice ordinal, Device** device);
// Resolves the default streams by the rules of the exported name in use.
CUresult FindStream(CUstream handle, std::shared_ptr<Stream>* stream);
CUresult FindEvent(CUevent handle, std::shared_ptr<Event>* event);
// Also takes a CUkernel in a CUfunction's clothes, as the manual allows, for the current context.
CUresult FindFunction(CUfunction handle, std::shared_ptr<Function>* function);

}  // namespace softgpu
