#include "brrr/run/learning_regime.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace brrr::runs {
namespace {

constexpr size_t kFewestPoints = 4;   // a bend needs three, its noise one more
constexpr double kNoiseFactor = 2.5;  // standard deviations that chance rarely reaches
constexpr double kLeastRise = 0.01;   // of the loss: less is not worth a word
constexpr double kLeastGap = 0.03;    // of the validation loss
constexpr double kLeastFall = 0.03;   // over the last quarter of the steps
constexpr double kDivergence = 0.05;  // of the training loss
constexpr double kTokensForRoom =
    100;  // tokens seen for each parameter after which size must bound

struct Curves {
  std::vector<EvaluationPoint> points;
  std::vector<double> train = {}, validation = {};  // smoothed
  double noise = 0, train_noise = 0;                // of one point before smoothing
  size_t best = 0;                                  // of the smoothed validation loss
  size_t lowest_train = 0;

  size_t last() const { return points.size() - 1; }
  // What a difference on the curve must exceed to be no accident.
  double tolerance(double part) const {
    return std::max(part * validation[last()], kNoiseFactor * noise);
  }
  double gap() const { return validation[last()] - train[last()]; }
  double rise() const { return validation[last()] - validation[best]; }
  // Of a curve since three quarters of the steps.
  double recent_fall(const std::vector<double>& curve) const {
    size_t from = last();
    while (from > 0 && points[from].step * 4 > points[last()].step * 3) --from;
    return curve[from] - curve[last()];
  }
};

Curves curves_of(const RunLog& run) {
  Curves curves{.points = evaluation_points(run)};
  std::vector<double> train, validation;
  for (const EvaluationPoint& point : curves.points) {
    train.push_back(point.train);
    validation.push_back(point.validation);
  }
  if (curves.points.empty()) return curves;
  curves.train = smoothed(train);
  curves.validation = smoothed(validation);
  curves.noise = noise_of(validation);
  curves.train_noise = noise_of(train);
  const auto place_of_least = [](const std::vector<double>& ys) {
    return static_cast<size_t>(std::min_element(ys.begin(), ys.end()) - ys.begin());
  };
  curves.best = place_of_least(curves.validation);
  curves.lowest_train = place_of_least(curves.train);
  return curves;
}

// The first point from which the validation loss never came below by more than its tolerance.
size_t plateau_begin(const Curves& curves) {
  size_t begin = curves.best;
  while (begin > 0 && curves.validation[begin - 1] <=
                          curves.validation[curves.best] + curves.tolerance(kLeastRise))
    --begin;
  return begin;
}

struct Verdict {
  LearningKind kind;
  size_t since = 0;  // a point
};

bool training_rises(const Curves& curves) {
  const double lowest = curves.train[curves.lowest_train];
  return curves.train[curves.last()] - lowest >
         std::max(kDivergence * lowest, kNoiseFactor * curves.train_noise);
}

bool has_gap(const Curves& curves) { return curves.gap() > curves.tolerance(kLeastGap); }

Verdict verdict_of(const Curves& curves, double tokens_per_parameter) {
  if (training_rises(curves)) return {LearningKind::diverging, curves.lowest_train};
  const size_t last = curves.last();
  const bool train_fell = curves.train[last] < curves.train[curves.best];
  if (curves.rise() > curves.tolerance(kLeastRise) && train_fell)
    return {LearningKind::overfitting, curves.best};
  const size_t plateau = plateau_begin(curves);
  const bool long_plateau = (last - plateau) * 3 >= last && last - plateau >= 3;
  const double memorised = curves.train[plateau] - curves.train[last];
  if (has_gap(curves) && long_plateau && memorised > kLeastGap * curves.train[plateau])
    return {LearningKind::overfitting, plateau};
  if (has_gap(curves)) return {LearningKind::healthy};
  const bool falls = curves.recent_fall(curves.validation) > curves.tolerance(kLeastFall);
  const bool full = tokens_per_parameter > kTokensForRoom;
  return {falls || full ? LearningKind::underfitting : LearningKind::healthy};
}

// ---- words --------------------------------------------------------------------------------------

std::string count_text(double count) {
  if (count >= 1e9) return fmt::format("{:.3g} billion", count / 1e9);
  if (count >= 1e6) return fmt::format("{:.3g} million", count / 1e6);
  return with_commas(std::llround(count));
}

double tokens_seen(const RunLog& run) {
  return run.steps.empty()
             ? 0
             : static_cast<double>(run.steps.back().step * run.facts.tokens_per_step());
}

bool is_over(const RunLog& run) { return run.facts.status != "running"; }

std::string capacity_text(const RunLog& run) {
  const auto parameters = static_cast<double>(run.facts.parameters);
  const auto samples = static_cast<double>(run.facts.train_tokens);
  if (parameters <= 0 || samples <= 0) return "";
  const double ratio = parameters / samples;
  const std::string side =
      ratio < 0.5 ? "fewer parameters than samples, the side on which overfitting is bounded"
      : ratio < 2
          ? "close to one parameter a sample, where models that fit every sample are the most "
            "erratic and the test error can peak"
          : "more parameters than samples";
  return fmt::format(
      "{} parameters against {} training tokens ({:.2g} a token), read {:.2g} times: {}. Past the "
      "interpolation threshold, where a model can fit every training token, more capacity may help "
      "again (double descent), so a smaller model is not always the cure.",
      count_text(parameters), count_text(samples), ratio, tokens_seen(run) / samples, side);
}

std::string regularisation_text(const Curves& curves, const RunLog& run) {
  const double gap = curves.gap();
  if (!has_gap(curves)) {
    return fmt::format(
        "Regularisation would not help: training and validation loss differ by {:.3f}, within "
        "{:.3f} "
        "(noise, or 3 % of the loss). There is no gap to close; dropout or decay would raise both.",
        gap, curves.tolerance(kLeastGap));
  }
  std::string has = "now none is on";
  if (run.facts.dropout > 0 || run.facts.weight_decay > 0)
    has = fmt::format("now dropout {:g}, weight decay {:g}", run.facts.dropout,
                      run.facts.weight_decay);
  return fmt::format(
      "Regularisation could help: the validation loss is {:.3f} above the training loss ({:.0f} "
      "%), more "
      "than noise ({}).",
      gap, 100 * gap / curves.validation[curves.last()], has);
}

void say_overfitting(LearningRegime& regime, const Curves& curves) {
  const bool rises = curves.rise() > curves.tolerance(kLeastRise);
  const std::string movement =
      rises ? fmt::format("the validation loss has risen from {:.3f} to {:.3f}",
                          regime.best_validation_loss, regime.validation_loss)
            : fmt::format("the validation loss stands at {:.3f}", regime.validation_loss);
  regime.what =
      fmt::format("Overfitting since step {}: {} while the training loss goes on to {:.3f}.",
                  with_commas(regime.since_step), movement, regime.train_loss);
  regime.why =
      "What the model learns now is true of the training set alone: it is read so often that "
      "single "
      "texts are remembered.";
  regime.next = {fmt::format("use the checkpoint of step {}, the best on validation data",
                             with_commas(regime.best_step)),
                 "get more text, which is the surest cure",
                 "raise dropout (0.1 to 0.3) or weight decay, or stop earlier (fewer steps)"};
}

void say_underfitting(LearningRegime& regime, const Curves& curves, bool over) {
  const double fall = curves.recent_fall(curves.validation);
  const bool falls = fall > curves.tolerance(kLeastFall);
  regime.what =
      fmt::format("Underfitting: training and validation loss are both {:.3f}{}.",
                  regime.validation_loss, falls ? " and still falling" : ", and stand still");
  if (falls) {
    regime.why = fmt::format(
        "The last quarter of the steps took {:.3f} off the validation loss: the run {} before the "
        "model "
        "had learnt what it can.",
        fall, over ? "ended" : "is young");
    regime.next = {
        over ? "train for more steps: --resume with twice as many" : "let it run: nothing is wrong",
        "or learn faster: a higher learning rate or a larger batch, if the loss stays smooth"};
    return;
  }
  regime.why =
      "The model has seen over 100 tokens for each of its parameters and improves no more on "
      "either set: "
      "it is too small for the data, or the data is as predictable as it gets.";
  regime.next = {
      "make the model larger (width first, then layers)",
      "compare with a larger model: if that stands at the same loss, it is the data's own"};
}

void say_healthy(LearningRegime& regime, const Curves& curves, bool over) {
  const bool falls = curves.recent_fall(curves.validation) > curves.tolerance(kLeastFall);
  regime.what = fmt::format("Healthy: validation loss {:.3f}, training loss {:.3f}, {}.",
                            regime.validation_loss, regime.train_loss,
                            falls ? "both falling" : "the best so far or near it");
  regime.why = has_gap(curves)
                   ? "There is a gap, but the validation loss has not turned: what is learnt still "
                     "carries over to new text."
                   : "What is learnt carries over to new text, and the curves have levelled off.";
  if (falls) {
    regime.next = {over ? "more steps would lower it further: --resume with more of them"
                        : "let it run: nothing is wrong"};
  } else {
    regime.next = {"for a lower loss: more text and a larger model together, not one alone"};
  }
}

void say_diverging(LearningRegime& regime, const Curves& curves) {
  regime.what = fmt::format(
      "Diverging since step {}: the training loss has risen from {:.3f} to {:.3f}.",
      with_commas(regime.since_step), curves.train[curves.lowest_train], regime.train_loss);
  regime.why = "The updates are too large for the place where the weights are now.";
  regime.next = {"go back to the checkpoint before and lower the learning rate by a factor of 3",
                 "warm up over more steps, and keep gradient clipping on (1.0)"};
}

LearningRegime too_early(const RunLog& run, const Curves& curves) {
  LearningRegime regime;
  regime.train_loss = regime.validation_loss = regime.best_validation_loss = NAN;
  regime.what = fmt::format("Too early to say: {} of the {} evaluations that a judgement needs.",
                            curves.points.size(), kFewestPoints);
  regime.why = "Training and validation loss must be seen together over some time.";
  regime.capacity = capacity_text(run);
  regime.next = {is_over(run) ? "evaluate more often, or train for more steps"
                              : "look again later: brrr doctor works while the run goes on"};
  return regime;
}

bool ends_without_number(const RunLog& run) {
  return !run.steps.empty() && !std::isfinite(run.steps.back().loss);
}

LearningRegime no_number(const RunLog& run) {
  LearningRegime regime{.kind = LearningKind::diverging};
  regime.train_loss = regime.validation_loss = regime.best_validation_loss = NAN;
  auto step = run.steps.rbegin();
  while (step != run.steps.rend() && !std::isfinite(step->loss)) ++step;
  regime.since_step = step == run.steps.rend() ? 0 : step->step;
  regime.what = fmt::format("Diverging since step {}: the loss is not a number any more.",
                            with_commas(regime.since_step));
  regime.why = "A value overflowed; every weight that it reached is lost.";
  regime.capacity = capacity_text(run);
  regime.next = {"resume from the checkpoint before with a lower learning rate",
                 "keep the guard on, which skips such steps"};
  return regime;
}

}  // namespace

std::string_view learning_name(LearningKind kind) {
  switch (kind) {
    case LearningKind::too_early: return "too early to say";
    case LearningKind::underfitting: return "underfitting";
    case LearningKind::healthy: return "healthy";
    case LearningKind::overfitting: return "overfitting";
    case LearningKind::diverging: return "diverging";
  }
  return "unknown";
}

LearningRegime judge_learning(const RunLog& run) {
  if (ends_without_number(run)) return no_number(run);
  const Curves curves = curves_of(run);
  if (curves.points.size() < kFewestPoints) return too_early(run, curves);

  const double tokens_per_parameter =
      run.facts.parameters > 0 ? tokens_seen(run) / static_cast<double>(run.facts.parameters) : 0;
  const Verdict verdict = verdict_of(curves, tokens_per_parameter);
  LearningRegime regime{.kind = verdict.kind};
  regime.train_loss = curves.train[curves.last()];
  regime.validation_loss = curves.validation[curves.last()];
  regime.best_validation_loss = curves.validation[curves.best];
  regime.best_step = curves.points[curves.best].step;
  regime.noise = curves.noise;
  regime.regularisation_could_help = has_gap(curves);
  regime.regularisation = regularisation_text(curves, run);
  regime.capacity = capacity_text(run);
  switch (verdict.kind) {
    case LearningKind::overfitting:
      regime.since_step = curves.points[verdict.since].step;
      say_overfitting(regime, curves);
      break;
    case LearningKind::diverging:
      regime.since_step = curves.points[verdict.since].step;
      say_diverging(regime, curves);
      break;
    case LearningKind::underfitting: say_underfitting(regime, curves, is_over(run)); break;
    default: say_healthy(regime, curves, is_over(run)); break;
  }
  return regime;
}

std::string to_text(const LearningRegime& regime) {
  std::string text;
  for (const std::string& sentence :
       {regime.what, regime.why, regime.regularisation, regime.capacity}) {
    if (!sentence.empty()) text += sentence + "\n";
  }
  if (!regime.next.empty()) text += "Next:\n";
  for (const std::string& step : regime.next) text += "  - " + step + "\n";
  return text;
}

}  // namespace brrr::runs
