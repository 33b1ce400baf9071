// One point (CPU: a vector of points): guard the variables, evaluate, clear undefined derivatives.
//
// Points of negligible density are ignored. A spin without density gets a tiny uniform one, which keeps quotients finite,
// and zero derivatives with respect to its gradient and kinetic energy. The kinetic energy density is at least von Weizsaecker's:
// rounding may leave it below for one orbital. NaN deliberately passes every guard: it must not be taken for zero density.
#if SPINS == 1
#define DENSITIES 1
#define PAIRS 1
#else
#define DENSITIES 2
#define PAIRS 3
#endif
#define SIGMA_AT DENSITIES
#define TAU_AT (DENSITIES + PAIRS)
#define VARIABLES (DENSITIES + GRADIENT * PAIRS + KINETIC * DENSITIES)

FN VEC xc_at_least(VEC x, VEC least) { return vselect(x < least, least, x); }

FN void xc_kinetic(VEC rho, VEC sigma, VEC* tau) {
    *tau = xc_at_least(*tau, xc_at_least(sigma / (REAL(8) * rho), vset(TAU_FLOOR)));
}

FN void xc_point(VEC* x, VEC* y) {
    const VEC nothing = vset(0);
#if SPINS == 1
    const MASK empty = x[0] <= RHO_FLOOR;
    x[0] = vselect(empty, vset(1), x[0]);
#if GRADIENT
    x[1] = vselect(empty, vset(SIGMA_FLOOR), xc_at_least(x[1], vset(SIGMA_FLOOR)));
#endif
#if KINETIC
    xc_kinetic(x[0], x[1], x + 2);
#endif
#else
    const MASK empty = xc_at_least(x[0], nothing) + xc_at_least(x[1], nothing) <= RHO_FLOOR;
    const MASK no_a = x[0] <= SPIN_FLOOR, no_b = x[1] <= SPIN_FLOOR;
    UNROLL for (int s = 0; s < 2; ++s) x[s] = vselect(empty, vset(1), xc_at_least(x[s], vset(SPIN_FLOOR)));
#if GRADIENT
    x[2] = vselect(empty | no_a, vset(SIGMA_FLOOR), xc_at_least(x[2], vset(SIGMA_FLOOR)));
    x[4] = vselect(empty | no_b, vset(SIGMA_FLOOR), xc_at_least(x[4], vset(SIGMA_FLOOR)));
    const VEC bound = REAL(0.5) * (x[2] + x[4]);
    const VEC mixed = vselect(bound < x[3], bound, xc_at_least(x[3], -bound));
    x[3] = vselect(empty | no_a | no_b, nothing, mixed);
#endif
#if KINETIC
    xc_kinetic(x[0], x[2], x + 5);
    xc_kinetic(x[1], x[4], x + 6);
#endif
#endif
    energy_density(x, y);
    UNROLL for (int k = 0; k <= VARIABLES; ++k) y[k] = vselect(empty, nothing, y[k]);
#if SPINS == 2 && GRADIENT
    y[3] = vselect(no_a, nothing, y[3]);
    y[5] = vselect(no_b, nothing, y[5]);
#if KINETIC
    y[6] = vselect(no_a, nothing, y[6]);
    y[7] = vselect(no_b, nothing, y[7]);
#endif
#endif
}
