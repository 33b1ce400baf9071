// Weight of an integral (ij|kl), i <= j and k <= l, in the energy of a pair, and how it changes when densities do.
struct Weights {
    VEC value, by_x, by_y;
};

FN VEC exchange_weight(const VEC* P, const VEC* D, int i, int j, int k, int l) {
    return P[i * NB + k] * D[j * NB + l] + P[i * NB + l] * D[j * NB + k];
}

FN Weights weights(const Pair& x, const Densities& P, const Densities& dx, const Densities& dy, int spins, REAL factor,
                   int i, int j, int k, int l) {
    const REAL copies = (i == j ? 1 : 2) * (k == l ? 1 : 2);
    const VEC core_a = j == 0 ? x.a[CHARGE] : vset(0), core_b = l == 0 ? x.b[CHARGE] : vset(0);
    const VEC p = P.A[i * NA + j], q = P.B[k * NB + l];
    const VEC dpx = dx.A[i * NA + j], dqx = dx.B[k * NB + l], dpy = dy.A[i * NA + j], dqy = dy.B[k * NB + l];
    Weights w = {(p - core_a) * (q - core_b) - core_a * core_b, dpx * (q - core_b) + (p - core_a) * dqx,
                 dpy * (q - core_b) + (p - core_a) * dqy};
    for (int s = 0; s < spins; ++s) {  // with one spin, P is the sum of both: factor 1/2
        const VEC* X = P.X[s];
        w.value = w.value - REAL(0.5) * factor * exchange_weight(X, X, i, j, k, l);
        w.by_x = w.by_x - REAL(0.5) * factor * (exchange_weight(dx.X[s], X, i, j, k, l) + exchange_weight(X, dx.X[s], i, j, k, l));
        w.by_y = w.by_y - REAL(0.5) * factor * (exchange_weight(dy.X[s], X, i, j, k, l) + exchange_weight(X, dy.X[s], i, j, k, l));
    }
    return Weights{copies * w.value, copies * w.by_x, copies * w.by_y};
}

FN void pair_gradient(const Pair& x, const Frame& f, const Densities& P, int spins, REAL factor, Model, VEC* force) {
    Densities dx, dy;
    rotated(0, P, spins, &dx);
    rotated(1, P, spins, &dy);
    VEC w[VALUES], along = vset(0), by_x = vset(0), by_y = vset(0);
    NO_UNROLL for (int slope = 0; slope < 2; ++slope) {
        local_repulsion(x.R, x.a, x.b, slope != 0, w);
        NO_UNROLL for (int t = 0; t < ENTRIES; ++t) {
            const int i = first_of_a[entry_a[t]], j = second_of_a[entry_a[t]];
            const int k = first_of_b[entry_b[t]], l = second_of_b[entry_b[t]];
            const Weights of = weights(x, P, dx, dy, spins, factor, i, j, k, l);
            const VEC g = w[entry_value[t]];
            if (slope) {
                along = along + g * of.value;
            } else {
                by_x = by_x + g * of.by_x;
                by_y = by_y + g * of.by_y;
            }
        }
    }
    to_molecule(x, f, along, by_x, by_y, force);
}
