#include "serve/front/model_metrics.h"

#include <algorithm>

namespace serve::front {

ModelMetrics::ModelMetrics(metrics::Registry* registry, const std::string& model) {
  const metrics::Labels labels = {{"model_name", model}};
  const auto gauge = [&](const char* name, const char* help) {
    return registry->AddGauge(std::string("laneway_serve_") + name, help, labels);
  };
  const auto counter = [&](const char* name, const char* help) {
    return Mirror{registry->AddCounter(std::string("laneway_serve_") + name, help, labels)};
  };
  running_ = gauge("num_requests_running", "Answers that steps compute");
  waiting_ = gauge("num_requests_waiting", "Requests in the queue");
  kv_usage_ = gauge("kv_cache_usage_perc", "Share of the blocks of keys and values in use, 0 to 1");
  ready_ = gauge("engine_ready", "1: the model's engine can compute");
  preemptions_ = counter("num_preemptions_total", "Answers that gave their blocks up");
  prefix_queries_ = counter("prefix_cache_queries_total", "Tokens that were looked up");
  prefix_hits_ = counter("prefix_cache_hits_total", "Tokens that were computed before");
  computed_ = counter("computed_tokens_total", "Tokens that steps have computed");
  recomputed_ = counter("recomputed_tokens_total", "Computed tokens whose blocks were given up");
  restarts_ = counter("engine_restarts_total", "Engines that were lost");
  steps_ = counter("steps_total", "Steps that engines have computed");
  step_seconds_ = counter("step_seconds_total", "Time for which engines computed steps");
}

void ModelMetrics::Update(const llm::EngineGenerator& engine) {
  const scheduler::batching::iteration::State& state = engine.state();
  const llm::EngineStatus& status = engine.status();
  running_->Set(state.requests.running_answers());
  waiting_->Set(static_cast<double>(state.requests.waiting().size()));
  kv_usage_->Set(static_cast<double>(state.blocks.referenced()) /
                 std::max(1, state.blocks.total()));
  ready_->Set(status.state == llm::EngineState::kReady ? 1 : 0);
  preemptions_.Set(static_cast<double>(state.counters.preemptions));
  prefix_queries_.Set(static_cast<double>(state.counters.prefix_query_tokens));
  prefix_hits_.Set(static_cast<double>(state.counters.prefix_hit_tokens));
  computed_.Set(static_cast<double>(state.counters.computed_tokens));
  recomputed_.Set(static_cast<double>(state.counters.recomputed_tokens));
  restarts_.Set(static_cast<double>(status.restarts));
  steps_.Set(static_cast<double>(status.steps));
  step_seconds_.Set(static_cast<double>(status.steps_us) * 1e-6);
}

}  // namespace serve::front
