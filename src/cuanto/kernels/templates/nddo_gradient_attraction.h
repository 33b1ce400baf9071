// Gradient of -Z sum_ij P_ij times the difference of the interaction with a core, for the products on A.
FN void pair_gradient(const Pair& x, const Frame& f, const Densities& P, int spins, REAL, Model, VEC* force) {
    Densities dx, dy;
    rotated(0, P, spins, &dx);
    rotated(1, P, spins, &dy);
    VEC w[VALUES], along = vset(0), by_x = vset(0), by_y = vset(0);
    NO_UNROLL for (int slope = 0; slope < 2; ++slope) {
        core_difference(x, slope != 0, w);
        NO_UNROLL for (int t = 0; t < ENTRIES; ++t) {
            const int i = first_of_a[entry_a[t]], j = second_of_a[entry_a[t]];
            const VEC g = w[entry_value[t]] * x.b[CHARGE] * REAL(i == j ? -1 : -2);
            if (slope) {
                along = along + g * P.A[i * NA + j];
            } else {
                by_x = by_x + g * dx.A[i * NA + j];
                by_y = by_y + g * dy.A[i * NA + j];
            }
        }
    }
    to_molecule(x, f, along, by_x, by_y, force);
    UNROLL for (int k = 0; k < 3; ++k) force[k] = vselect(x.R > REAL(0), force[k], vset(0));
}
