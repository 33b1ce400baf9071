// A thread per point.
extern "C" __global__ void __launch_bounds__(THREADS) ENTRY(PARAMETERS) {
    const INDEX g = begin + INDEX(blockIdx.x) * THREADS + threadIdx.x;
    if (g >= end) return;
    VEC x[VARIABLES], y[VARIABLES + 1];
    UNROLL for (int i = 0; i < DENSITIES; ++i) x[i] = rho[i * stride + g];
#if GRADIENT
    UNROLL for (int i = 0; i < PAIRS; ++i) x[SIGMA_AT + i] = sigma[i * stride + g];
#endif
#if KINETIC
    UNROLL for (int i = 0; i < DENSITIES; ++i) x[TAU_AT + i] = tau[i * stride + g];
#endif
    xc_point(x, y);
    e[g] = y[0];
    UNROLL for (int i = 0; i < DENSITIES; ++i) v_rho[i * stride + g] = y[1 + i];
#if GRADIENT
    UNROLL for (int i = 0; i < PAIRS; ++i) v_sigma[i * stride + g] = y[1 + SIGMA_AT + i];
#endif
#if KINETIC
    UNROLL for (int i = 0; i < DENSITIES; ++i) v_tau[i * stride + g] = y[1 + TAU_AT + i];
#endif
}
