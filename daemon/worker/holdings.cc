#include "daemon/worker/holdings.h"

namespace worker {
namespace {

Tenant TenantOf(const SessionSetup& setup, const Environment& environment) {
  Tenant tenant{setup.session_id, setup.uid, nullptr};
  if (environment.jobs != nullptr) {
    tenant.job = environment.jobs->Of(setup.job_id, setup.memory_limit_bytes);
  } else {
    tenant.job = std::make_shared<JobMemory>();
    tenant.job->SetLimit(setup.memory_limit_bytes);
  }
  return tenant;
}

}  // namespace

Holdings::Holdings(const Environment& environment, const SessionSetup& setup, StreamOwner* owner)
    : Holdings(environment, setup, owner, TenantOf(setup, environment)) {}

Holdings::Holdings(const Environment& environment, const SessionSetup& setup, StreamOwner* owner,
                   const Tenant& tenant)
    : environment(environment),
      seen_devices(setup.scheduling, environment.contexts.size()),
      arena(environment, tenant, setup.slot, ipc::UniqueFd(setup.swap_fd)),
      arrays(tenant.job),
      pinned(environment, setup.slot, setup.pinned_fd),
      addresses(&arena, &pinned, environment.backed, setup.slot),
      streams(environment, owner, seen_devices),
      frees(environment) {}

bool Holdings::StreamsIdle() {
  for (StreamTable::Stream* const stream : streams.All()) {
    if (environment.driver->cuStreamQuery(stream->driver) == CUDA_ERROR_NOT_READY) return false;
  }
  return true;
}

bool Holdings::StreamsComplete() {
  for (StreamTable::Stream* const stream : streams.All()) {
    if (environment.driver->cuStreamQuery(stream->driver) != CUDA_SUCCESS) return false;
  }
  return true;
}

}  // namespace worker
