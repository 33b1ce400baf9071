// Basis functions are evaluated in double precision and rounded at the end in all kernels: rounding errors of exponents and
// coefficients are the same for all atoms of an element and would add up.
#if LANES == 1
typedef double WIDE;
FN VEC narrow(WIDE v) { return (VEC)v; }
#else
typedef double WIDE __attribute__((vector_size(LANES * sizeof(double))));
FN VEC narrow(WIDE v) { return __builtin_convertvector(v, VEC); }
#endif

#if CUANTO_SINGLE
#if LANES > 1
FN WIDE vfma(WIDE a, WIDE b, WIDE c) { return a * b + c; }
FN WIDE vfma(double a, WIDE b, WIDE c) { return a * b + c; }
#else
FN WIDE vfma(WIDE a, WIDE b, WIDE c) { return fma(a, b, c); }
#endif
#endif

// exp(-t), t >= 0
#if LANES > 1 && CUANTO_SINGLE
// 2^k exp(r) with |r| <= ln(2)/2, by Taylor's series up to r^8: a relative error of 2e-10, enough before rounding to float.
FN WIDE falling(WIDE t) {
    typedef unsigned long long WIDE_BITS __attribute__((vector_size(LANES * sizeof(double))));
    t = t < 700.0 ? t : t * 0.0 + 700.0;  // 1e-304
    const double rounder = 6755399441055744.0;  // its sum with x has x, rounded to an integer, in the lowest bits
    const WIDE shifted = t * -1.4426950408889634 + rounder, r = -t - (shifted - rounder) * 0.6931471805599453;
    WIDE sum = r * (1.0 / 40320) + 1.0 / 5040;
    sum = sum * r + 1.0 / 720;
    sum = sum * r + 1.0 / 120;
    sum = sum * r + 1.0 / 24;
    sum = sum * r + 1.0 / 6;
    sum = sum * r + 0.5;
    sum = sum * r + 1.0;
    sum = sum * r + 1.0;
    return reinterpret<WIDE>(WIDE_BITS(reinterpret<WIDE_BITS>(sum) + (reinterpret<WIDE_BITS>(shifted) << 52)));
}
#elif CUANTO_SINGLE
FN WIDE falling(WIDE t) { return exp(-t); }
#else
FN WIDE falling(WIDE t) { return vexp(-t); }
#endif
