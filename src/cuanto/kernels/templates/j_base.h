// First step of every interaction of the J engine: X = P - Q and base[n] = sqrt(alpha) (-2 alpha)^n F_n(alpha X^2)
// for n = 0 .. order, from records that begin with the square root of the exponent (in single precision a centre has
// two parts). Distributions that do not overlap interact as point charges, base[n] = (-1)^n (2n - 1)!! sqrt(pi)/2 /
// X^(2n + 1), which takes one inverse square root and no exponent.
#define J_HALF_ROOT_PI REAL(0.88622692545275801365)

// The argument of the Boys function from which a distribution equals a point charge to the last digit.
#if CUANTO_SINGLE
FN REAL j_far(int order) { return REAL(18) + REAL(2.2) * REAL(order); }
#else
FN REAL j_far(int order) { return boys_far(order); }
#endif

FN VEC j_distance(const REAL* bra, const REAL* ket, VEC* X) {
    VEC R2 = vset(REAL(0));
    UNROLL for (int i = 0; i < 3; ++i) {
        X[i] = vset(bra[1 + i]) - vload(ket + (1 + i) * KETS);
        if (GEOMETRY > 4) X[i] += vset(bra[GEOMETRY - 3 + i]) - vload(ket + (GEOMETRY - 3 + i) * KETS);
        R2 = vfma(X[i], X[i], R2);
    }
    return R2;
}

FN void j_point_charges(int order, VEC R2, VEC* base) {
    const VEC inverse = vrsqrt(R2), minus = -(inverse * inverse);
    base[0] = inverse * J_HALF_ROOT_PI;
    UNROLL for (int n = 0; n < order; ++n) base[n + 1] = base[n] * (minus * REAL(2 * n + 1));
}

template <int ORDER>
FN void j_base(const REAL* bra, const REAL* ket, const REAL* boys_table, VEC* X, VEC* base) {
    const VEC R2 = j_distance(bra, ket, X);
    const REAL a = bra[0];
    const VEC b = vload(ket), ab = a * b, sum = vfma(b, b, vset(a * a));
    if (!vany(ab * ab * R2 < sum * j_far(ORDER))) {
        j_point_charges(ORDER, R2, base);
        return;
    }
    VEC factor = ab * vrsqrt(sum);
    const VEC alpha = factor * factor, step = alpha * REAL(-2);
    boys<ORDER>(alpha * R2, boys_table, base);
    UNROLL for (int n = 0; n <= ORDER; ++n) {
        base[n] *= factor;
        factor *= step;
    }
}

// The same for an order known at run time.
FN void j_base_any(int order, const REAL* bra, const REAL* ket, const REAL* boys_table, VEC* X, VEC* base) {
    const VEC R2 = j_distance(bra, ket, X);
    const REAL a = bra[0];
    const VEC b = vload(ket), ab = a * b, sum = vfma(b, b, vset(a * a));
    VEC factor = ab * vrsqrt(sum);
    const VEC alpha = factor * factor, step = alpha * REAL(-2);
    boys_any(order, alpha * R2, boys_table, base);
    for (int n = 0; n <= order; ++n) {
        base[n] *= factor;
        factor *= step;
    }
}
