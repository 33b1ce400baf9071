// The share of a point that belongs to its own atom: P_own / sum_i P_i with P_i = prod_j s(mu_ij).
//
// The nearest atoms come first in a list, so that a product that vanishes does so at its first factors. `Distances` gives
// |r - R| of an atom of the list, for the points of a vector.
#define VANISHED REAL(1e-17)
#define REACH REAL(0.64)                // Stratmann: s is 1 below -0.64 and 0 above 0.64
#define HORIZON REAL(4.5555555555555562)  // (1 + 0.64) / (1 - 0.64): atoms this much further away do not matter

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

// The first `rows` of the `count` atoms of the list may have a share (grid_near.h); `distance` (of every atom, by its number)
// from the middle of the points, which lie within `radius` of it.
template <class Distances>
FN VEC own_share(int rows, int count, const int* list, const REAL* distance, REAL radius, VEC own, INDEX atoms,
                 const REAL* pair, const Distances& r) {
    VEC mine = vset(0), total = vset(0);
    NO_UNROLL for (int i = 0; i < rows; ++i) {
#if STRATMANN
        const REAL end = distance[list[i]] + 2 * radius;
#endif
        const VEC ri = r(i);
        const REAL* row = pair + 2 * atoms * list[i];
        VEC P = vset(1);
        bool alive = true;
        NO_UNROLL for (int j = 0; j < count && alive; ++j) {
            if (j == i) continue;
            const REAL* other = row + 2 * list[j];
#if STRATMANN
            if ((distance[list[j]] - end) * other[0] > REACH) continue;  // mu_ij is below -0.64 at all points: s = 1
#endif
            P = P * cell((ri - r(j)) * other[0], other[1]);
            if (j < 8 || (j & 7) == 0) alive = vany(P > VANISHED);
        }
        if (!alive) continue;
        total = total + P;
        mine = vselect(own == REAL(list[i]), P, mine);
    }
    return vselect(total > REAL(0), mine * vrcp(vselect(total > REAL(0), total, vset(1))), vset(0));
}
