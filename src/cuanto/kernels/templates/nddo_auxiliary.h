// A_k(p) exp(p) = int_1^inf x^k exp(p - p x) dx, by upward recursion, which is stable.
template <int COUNT, class V> FN void auxiliary_a(V p, V* A) {
    const V step = inverse(p);
    A[0] = step;
    UNROLL for (int k = 1; k < COUNT; ++k) A[k] = (A[k - 1] * REAL(k) + REAL(1)) * step;
}

// B_k(b) exp(-|b|) for b = half * difference: a series for small |b|, upward recursion, which is stable there, beyond.
template <int COUNT, class V> FN void auxiliary_b(V half, VEC difference, bool mopac, V* B) {
    const V b = half * magnitude(difference);
    const REAL limit = mopac ? MOPAC_LIMIT : SERIES_LIMIT;
    const MASK small = value_of(b) <= limit;
    const V decay = exponential(b * REAL(-1)), square = decay * decay;
    const V step = inverse(choose(small, number<V>(limit), b));
    V last = (square * REAL(-1) + REAL(1)) * step;
    V near[COUNT];
    series_b<COUNT>(choose(small, b, number<V>(0)), mopac, near);
    UNROLL for (int k = 0; k < COUNT; ++k) {
        if (k) last = (last * REAL(k) - square + REAL(k % 2 ? -1 : 1)) * step;
        B[k] = choose(small, near[k] * decay, last);
        if (k % 2) B[k] = choose(difference < REAL(0), B[k] * REAL(-1), B[k]);
    }
}
