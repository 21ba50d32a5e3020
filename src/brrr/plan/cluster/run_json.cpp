// The answer about a run as JSON; field names are kept stable.
#include <nlohmann/json.hpp>

#include "brrr/plan/cluster/run_question.h"

namespace brrr::plan {

std::string to_json(const RunAnswer& a) {
  using Json = nlohmann::ordered_json;
  const RunQuestion& q = a.question;
  Json json{{"model", q.model_name},
            {"gpu", q.gpu},
            {"count", q.count},
            {"params", a.params},
            {"active_params", a.active_params},
            {"convention", info_of(q.model ? q.convention : Convention::six_n).name},
            {"flops_per_token", a.flops_per_token},
            {"total_flops", a.total_flops},
            {"six_nd_error", a.six_nd_error},
            {"attention_share", a.attention_share},
            {"peak_flops_per_second", a.peak_flops_per_second},
            {"seq", q.seq},
            {"global_batch", q.global_batch},
            {"micro_batch", q.micro_batch},
            {"micro_batches", a.micro_batches},
            {"dp", a.dp},
            {"step_seconds", a.step_seconds},
            {"update_seconds", a.update_seconds},
            {"tokens_per_second", a.tokens_per_second},
            {"days", a.days},
            {"gpu_hours", a.gpu_hours},
            {"cost_usd", a.cost_usd},
            {"energy_kwh", a.energy_kwh},
            {"mfu", a.mfu},
            {"hfu", a.hfu},
            {"predicted", a.is_predicted},
            {"fits", a.fits},
            {"binding", a.binding}};
  const RunMemory& m = a.memory;
  json["memory_bytes"] = {{"params", m.params},           {"grads", m.grads},
                          {"master", m.master},           {"optimizer", m.optimizer},
                          {"activations", m.activations}, {"logits", m.logits},
                          {"buffers", m.buffers},         {"overhead", m.overhead},
                          {"total", m.total()},           {"stage", m.stage}};
  const RunTraffic& t = a.traffic;
  json["communication_bytes"] = {{"data", t.data},         {"tensor", t.tensor},
                                 {"pipeline", t.pipeline}, {"context", t.context},
                                 {"expert", t.expert},     {"total", t.bytes()}};
  json["communication_seconds"] = t.seconds();
  json["exposed_seconds"] = t.exposed_seconds;
  json["bubble"] = t.bubble;
  json["assumptions"] = a.assumptions;
  return json.dump(1);
}

}  // namespace brrr::plan
