// What a training step makes smaller: the loss of a language model over tokens, or of a classifier over images.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "brrr/nn/language_model.h"

namespace brrr::training {

class Objective {
 public:
  virtual ~Objective() = default;
  virtual const Module& model() const = 0;
  virtual std::string_view data_name() const = 0;  // of the first input of the program
  // Of one micro-batch: what is trained, and of it what is reported.
  virtual LanguageLoss losses(const Tensor& data, const Tensor& targets,
                              const ForwardInputs& inputs) const = 0;
  // The parts of the model that note a largest activation.
  virtual std::vector<std::string> activation_names() const { return {}; }
};

class TokenLoss : public Objective {
 public:
  // The model must outlive it. `head_rows`: see LanguageModel::losses.
  TokenLoss(const LanguageModel& model, const CrossEntropyOptions& options, int64_t head_rows)
      : model_(model), options_(options), head_rows_(head_rows) {}
  const Module& model() const override { return model_; }
  std::string_view data_name() const override { return "tokens"; }
  LanguageLoss losses(const Tensor& tokens, const Tensor& targets,
                      const ForwardInputs& inputs) const override {
    return model_.losses(tokens, targets, inputs, options_, head_rows_);
  }
  std::vector<std::string> activation_names() const override;

 private:
  const LanguageModel& model_;
  CrossEntropyOptions options_;
  int64_t head_rows_;
};

// Cross entropy of the classes of images.
class ClassLoss : public Objective {
 public:
  explicit ClassLoss(const Layer& classifier) : classifier_(classifier) {}
  const Module& model() const override { return classifier_; }
  std::string_view data_name() const override { return "images"; }
  LanguageLoss losses(const Tensor& images, const Tensor& classes,
                      const ForwardInputs& inputs) const override;

 private:
  const Layer& classifier_;
};

}  // namespace brrr::training
