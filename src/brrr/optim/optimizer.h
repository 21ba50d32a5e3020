// The optimizers, all by one header.
//
//   AdamW optimizer(model.trainable_parameters(), {.weight_decay = 0.1});
//   auto grads = grad(loss, optimizer.parameters());
//   clip_global_norm(grads, 1.0);
//   optimizer.update(grads, rate);
#pragma once

#include "brrr/optim/adagrad.h"
#include "brrr/optim/adam.h"
#include "brrr/optim/clip.h"
#include "brrr/optim/lion.h"
#include "brrr/optim/muon.h"
#include "brrr/optim/registry.h"
#include "brrr/optim/rmsprop.h"
#include "brrr/optim/sgd.h"
#include "brrr/optim/update_rule.h"
