// P of all symmetries from D. D and P are vectors [component][pair] with components LL, SS, LS and SL (the transpose of
// LS). A block of threads computes one element of P: it reads its row of two matrices once, in order. `weight` [l][m]:
// weight of a density of symmetry m in rows of symmetry l; columns of weight zero are not read.
KERNEL(THREADS) ENTRY(PARAMETERS) {
    __shared__ double sums[THREADS];
    const int component = blockIdx.x / total;
    const INDEX row = blockIdx.x % total;
    const double* A = LL + row * total;
    const double* x = D;
#if RELATIVISTIC
    const double* B = LS + row * total;
    if (component == 1) {
        A = SL + row * total;
        B = SS + row * total;
    } else if (component > 1) {
        A = K + ((component - 2) * total + row) * (2 * total);
        B = A + total;
        x = D + 2 * total;
    }
    const double* y = x + total;
#endif
    int l = 0;
    while (row >= first[l + 1]) ++l;
    double sum = 0;
    for (int m = 0; m < symmetries; ++m) {
        const double w = weight[l * symmetries + m];
        if (w == 0) continue;
        double part = 0;
        const INDEX end = first[m + 1];
#pragma unroll 4
        for (INDEX column = first[m] + threadIdx.x; column < end; column += THREADS) {
            part = fma(A[column], x[column], part);
#if RELATIVISTIC
            part = fma(B[column], y[column], part);
#endif
        }
        sum = fma(w, part, sum);
    }
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) P[blockIdx.x] = sums[0];
}
