// cuBLASLt, found when it is first needed: a CUDA build starts on machines without it. Null where there is
// none, with the reason.
#pragma once

#include <cublasLt.h>

#include <string>

namespace brrr::cuda {

struct CublasLt {
  decltype(cublasLtCreate)* create;
  decltype(cublasLtGetVersion)* version;
  decltype(cublasLtMatmul)* matmul;
  decltype(cublasLtMatmulDescCreate)* desc_create;
  decltype(cublasLtMatmulDescDestroy)* desc_destroy;
  decltype(cublasLtMatmulDescSetAttribute)* desc_set;
  decltype(cublasLtMatrixLayoutCreate)* layout_create;
  decltype(cublasLtMatrixLayoutDestroy)* layout_destroy;
  decltype(cublasLtMatrixLayoutSetAttribute)* layout_set;
  decltype(cublasLtMatmulPreferenceCreate)* preference_create;
  decltype(cublasLtMatmulPreferenceDestroy)* preference_destroy;
  decltype(cublasLtMatmulPreferenceSetAttribute)* preference_set;
  decltype(cublasLtMatmulAlgoGetHeuristic)* heuristic;
  decltype(cublasLtGetStatusString)* status_string;
};

// Null where the library of this version of CUDA, or one of the functions, is missing.
const CublasLt* cublaslt();
cublasLtHandle_t cublaslt_handle(int device);

}  // namespace brrr::cuda
