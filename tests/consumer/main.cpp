// The least a program can do with an installed brrr: make a tensor and read a number out of it.
#include "brrr/brrr.h"

int main() {
  brrr::Tensor x = brrr::ones({2, 2});
  return brrr::sum(x).item<float>() == 4.0f ? 0 : 1;
}
