// Points begin to end, a vector at a time; the last one may be incomplete.
FN VEC xc_read(const REAL* from, int count) {
    if (count == LANES) return vload(from);
    REAL part[LANES] = {};
    for (int i = 0; i < count; ++i) part[i] = from[i];
    return vload(part);
}

FN void xc_write(REAL* to, VEC value, int count) {
    if (count == LANES) {
        vstore(to, value);
        return;
    }
    REAL part[LANES];
    vstore(part, value);
    for (int i = 0; i < count; ++i) to[i] = part[i];
}

extern "C" void ENTRY(PARAMETERS) {
    for (INDEX g = begin; g < end; g += LANES) {
        const int count = end - g < LANES ? int(end - g) : LANES;
        VEC x[VARIABLES], y[VARIABLES + 1];
        UNROLL for (int i = 0; i < DENSITIES; ++i) x[i] = xc_read(rho + i * stride + g, count);
#if GRADIENT
        UNROLL for (int i = 0; i < PAIRS; ++i) x[SIGMA_AT + i] = xc_read(sigma + i * stride + g, count);
#endif
#if KINETIC
        UNROLL for (int i = 0; i < DENSITIES; ++i) x[TAU_AT + i] = xc_read(tau + i * stride + g, count);
#endif
        xc_point(x, y);
        xc_write(e + g, y[0], count);
        UNROLL for (int i = 0; i < DENSITIES; ++i) xc_write(v_rho + i * stride + g, y[1 + i], count);
#if GRADIENT
        UNROLL for (int i = 0; i < PAIRS; ++i) xc_write(v_sigma + i * stride + g, y[1 + SIGMA_AT + i], count);
#endif
#if KINETIC
        UNROLL for (int i = 0; i < DENSITIES; ++i) xc_write(v_tau + i * stride + g, y[1 + TAU_AT + i], count);
#endif
    }
}
