// The list of settings: calls visit(key, flag, help, field) for each, in the order of the file. Reading,
// writing and the command line all walk it, so a setting is one line here and one member in config.h.
#pragma once

#include "brrr/run/config.h"

namespace brrr::runs {

// The names in the registry of optimizers, as they are at the first call.
std::string_view optimizer_setting_help();

template <typename Config, typename Visit>
void for_each_setting(Config& c, Visit&& visit) {
  auto& data = c.data;
  visit("data.files", "", "text files, token files or folders of them; none: embedded stories",
        data.files);
  visit("data.weights", "--weights", "mix the files by weight: 7,3; none: by their tokens",
        data.weights);
  visit("data.tokenizer", "--tokenizer", "auto, bpe, char, byte, or a tokenizer file",
        data.tokenizer);
  visit("data.vocab", "--vocab", "ids of a bpe tokenizer that is trained", data.vocab);
  visit("data.separator", "--separator", "text between documents, such as <|endoftext|>",
        data.separator);
  visit("data.validation", "--validation", "part of the data that is held out", data.validation);
  visit("data.stories", "--stories", "how many of the embedded stories", data.stories);
  visit("data.whole_documents", "--whole-documents", "rows hold whole documents",
        data.whole_documents);
  visit("data.document_mask", "--document-mask", "tokens attend to their own document only",
        data.document_mask);

  auto& model = c.model;
  visit("model.preset", "--model", "a preset of `brrr models`; empty: the sizes below",
        model.preset);
  visit("model.family", "--family", "a family of `brrr models`", model.family);
  visit("model.layers", "--layers", "blocks", model.layers);
  visit("model.heads", "--heads", "attention heads", model.heads);
  visit("model.width", "--width", "numbers a token", model.width);
  visit("model.context", "--context", "tokens a row", model.context);
  visit("model.dropout", "--dropout", "share of activations dropped while training", model.dropout);

  auto& train = c.train;
  visit("train.steps", "--steps", "updates", train.steps);
  visit("train.minutes", "--minutes", "time that sizes and steps are chosen for, where left open",
        train.minutes);
  visit("train.batch", "--batch", "rows at a time", train.batch);
  visit("train.accumulate", "--accumulate", "micro-batches a step", train.accumulate);
  visit("train.precision", "--precision", "f32, bf16, f16 or fp8", train.precision);
  visit("train.matmul_precision", "--matmul-precision",
        "products of f32 numbers: ieee, tf32 or bf16; auto: tf32 on a GPU, else ieee",
        train.matmul_precision);
  visit("train.precision_of", "--precision-of", "parts that have another: h.*.attn=f32,head=f32",
        train.precision_of);
  visit("train.recompute", "--recompute", "none, selective, full or budget", train.recompute);
  visit("train.memory_budget_mib", "--memory-budget",
        "MiB of temporaries that --recompute budget must fit", train.memory_budget_mib);
  visit("train.pad_vocab", "--pad-vocab",
        "fill the head's matrix up inside the step: auto (on a GPU), off, or to a multiple of N",
        train.pad_vocab);
  visit("train.without", "--without", "compiler passes to leave out", train.without);
  visit("train.z_loss", "--z-loss", "weight of logsumexp^2 in the loss", train.z_loss);
  visit("train.soft_cap", "--soft-cap", "bound of the logits; 0: none", train.soft_cap);
  visit("train.label_smoothing", "--label-smoothing", "part of the target spread over all ids",
        train.label_smoothing);

  auto& optimizer = c.optimizer;
  visit("optimizer.name", "--optimizer", optimizer_setting_help(), optimizer.name);
  visit("optimizer.lr", "--lr", "learning rate at its highest", optimizer.lr);
  visit("optimizer.schedule", "--schedule", "constant, linear, cosine or warmup-stable-decay",
        optimizer.schedule);
  visit("optimizer.warmup", "--warmup", "steps until the rate is at its highest", optimizer.warmup);
  visit("optimizer.final_share", "--final-share", "of the rate, at the last step",
        optimizer.final_share);
  visit("optimizer.weight_decay", "--weight-decay", "of matrices", optimizer.weight_decay);
  visit("optimizer.beta1", "--beta1", "decay of the first moment, or the momentum",
        optimizer.beta1);
  visit("optimizer.beta2", "--beta2", "decay of the second moment", optimizer.beta2);
  visit("optimizer.eps", "--eps", "keeps the rule from dividing by 0", optimizer.eps);
  visit("optimizer.clip", "--clip", "largest norm of the gradients; 0: none", optimizer.clip);
  visit("optimizer.average", "--average", "decay of the average of the weights; 0: none",
        optimizer.average);
  visit("optimizer.bf16_state", "--bf16-state", "optimizer state in bf16", optimizer.bf16_state);

  auto& report = c.report;
  visit("report.eval_every", "--eval-every", "steps between evaluations", report.eval_every);
  visit("report.eval_batches", "--eval-batches", "batches of an evaluation", report.eval_batches);
  visit("report.sample_every", "--sample-every", "steps between samples; 0: none",
        report.sample_every);
  visit("report.sample_tokens", "--sample-tokens", "length of a sample", report.sample_tokens);
  visit("report.temperature", "--temperature", "of samples", report.temperature);
  visit("report.activations_every", "--activations-every",
        "steps between largest activations in the log; 0: none", report.activations_every);

  visit("guard.action", "--guard", "on a spike or NaN: warn, skip or stop", c.guard.action);
  visit("guard.z", "--guard-z", "standard deviations that make a spike", c.guard.z);
  visit("guard.window", "--guard-window", "steps that it remembers", c.guard.window);

  visit("checkpoint.every", "--save-every", "steps between checkpoints", c.checkpoint.every);
  visit("checkpoint.keep", "--keep", "the newest so many stay, and the best", c.checkpoint.keep);

  auto& seed = c.seed;
  visit("seed.all", "--seed", "for all randomness", seed.all);
  visit("seed.init", "--seed-init", "initial weights alone", seed.init);
  visit("seed.data", "--seed-data", "order of the data alone", seed.data);
  visit("seed.dropout", "--seed-dropout", "what dropout drops alone", seed.dropout);
  visit("seed.sampling", "--seed-sampling", "samples alone", seed.sampling);
}

}  // namespace brrr::runs
