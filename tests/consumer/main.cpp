// The least a program can do with an installed brrr: make a tensor and read a number out of it, and read the GPU table,
// which is inside the library and needs its TOML reader.
#include "brrr/brrr.h"
#include "brrr/hardware/hardware.h"

int main() {
  const brrr::Tensor x = brrr::ones({2, 2});
  const bool sums = brrr::sum(x).item<float>() == 4.0f;
  return sums && brrr::hardware::find_gpu("h100").multiprocessors == 132 ? 0 : 1;
}
