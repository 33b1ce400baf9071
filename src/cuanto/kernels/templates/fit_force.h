// The derivative of sum_pqP Gamma_pqP (pq|P) with respect to the centres of p, and by translation of P: an item is a function
// q with the functions of a shell p; `values` has (kq|P) of the functions k of which derivatives of p are made.
//   target[x * naux + P] and target[3 * naux + 3 * atom + x] are what it is added to.
KERNEL(THREADS) ENTRY(PARAMETERS) {
    double* total = SUMS(target);
    FOR_TEAMS(item) {
        const INDEX q = item / shells, shell = item % shells;
        const double* gamma = Gamma + (q * functions + first_p[shell]) * naux;
        const double* made[2] = {values + (q * derivatives + first_raised[shell]) * naux,
                                 values + (q * derivatives + first_lowered[shell]) * naux};
        for (int x = 0; x < 3; ++x) {
            double force = 0;
            FOR_MEMBERS(block, 0, (naux + LANES - 1) / LANES) {
                const INDEX P = block * LANES;
                const int count = naux - P < LANES ? int(naux - P) : LANES;
                VEC sum = vset(0);
                for (int t = term_first[x]; t < term_first[x + 1]; ++t) {
                    const int* term = terms + 3 * t;
                    const double* one = made[term[1]] + term[2] * naux + P;
                    const double* other = gamma + term[0] * naux + P;
                    sum = count == LANES ? vfma(vset(weight[t]) * vload(one), vload(other), sum)
                                         : vfma(vset(weight[t]) * vread(one, count), vread(other, count), sum);
                }
                FOR_LANES(count) {
                    ADD(total + x * naux + P + lane, LANE(sum));
                    force += LANE(sum);
                }
            }
            force = team_sum(force);
            if (FIRST_MEMBER) ADD(total + 3 * naux + 3 * atom[shell] + x, force);
        }
    }
}
