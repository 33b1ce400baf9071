// Elementary functions of functionals: those of CUDA.
FN VEC xc_cbrt(VEC x) { return cbrt(x); }
FN VEC xc_exp(VEC x) { return exp(x); }
FN VEC xc_expm1(VEC x) { return expm1(x); }
FN VEC xc_log(VEC x) { return log(x); }
FN VEC xc_log1p(VEC x) { return log1p(x); }
FN VEC xc_atan(VEC x) { return atan(x); }
FN VEC xc_erf(VEC x) { return erf(x); }
