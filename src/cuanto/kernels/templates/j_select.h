// Significant pairs of primitives of two kinds: keep[place + item] for pair number skip + item, which is primitive
// number / count of the first kind with primitive number % count of the second. The overlap factor, times the largest
// contraction coefficients, times a bound of the polynomial part (the spread of the product Gaussian, the distance) has to
// exceed the threshold. Pairs of one kind count once.
KERNEL(THREADS) ENTRY(PARAMETERS) {
    FOR_ITEMS(item) {
        const INDEX k = (skip + item) / count, l = (skip + item) % count;
        const Pair pair = j_pair(a_exponent, a_centre, k, b_exponent, b_centre, l);
        double R2 = 0;
        for (int x = 0; x < 3; ++x) R2 = vfma(pair.A[x] - pair.B[x], pair.A[x] - pair.B[x], R2);
        double spread = R2 > 1 ? R2 : 1, size = a_size[k] * b_size[l] / pair.p;
        if (1 / pair.p > spread) spread = 1 / pair.p;
        size *= vexp(-pair.alpha * pair.beta / pair.p * R2);
        for (int degree = la + lb; degree > 1; degree -= 2) size *= spread;
        if ((la + lb) % 2) size *= vsqrt(spread);
        keep[place + item] = size > threshold && !(same && k < l);
    }
}
