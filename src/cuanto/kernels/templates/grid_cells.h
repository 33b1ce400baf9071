// Cell functions s(mu_ij); the share of a point that belongs to its own atom is P_own / sum_i P_i with P_i = prod_j s(mu_ij).
//
// The nearest atoms come first in a list (grid_near.h), so that a product that vanishes does so after a few factors.
#define VANISHED REAL(1e-17)
#define LEAST_CELL REAL(1e-12)          // smaller shares are zero: far above the rounding errors of the cell functions
#define REACH REAL(0.64)                // Stratmann: s is 1 below -0.64 and 0 above 0.64
#define HORIZON REAL(4.5555555555555562)  // (1 + 0.64) / (1 - 0.64): more distant atoms have no effect

FN VEC cell(VEC mu, REAL shift) {
#if STRATMANN
    VEC m = mu * (1 / REACH);
    m = vselect(m > REAL(1), vset(1), vselect(m < REAL(-1), vset(-1), m));
    const VEC q = m * m;
    const VEC g = m * (vset(REAL(35)) + q * (vset(REAL(-35)) + q * (vset(REAL(21)) - q * REAL(5)))) * REAL(0.0625);
    return vset(REAL(0.5)) - g * REAL(0.5);
#else
    VEC nu = vfma(vset(shift), vset(1) - mu * mu, mu);
    UNROLL for (int k = 0; k < 3; ++k) nu = nu * (vset(REAL(1.5)) - nu * nu * REAL(0.5));
    return vset(REAL(0.5)) - nu * REAL(0.5);
#endif
}

FN VEC shared(VEC mine, VEC total) {
    return vselect(mine > total * LEAST_CELL, mine * vrcp(vselect(total > REAL(0), total, vset(1))), vset(0));
}
