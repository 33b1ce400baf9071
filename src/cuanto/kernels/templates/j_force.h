// Forces of the potential V[t][rank], to one order higher than the pairs' own, on the centres of the pairs of a block with
// the density X: d/dA raises and lowers the momentum of the first function, d/dA + d/dB = d/dP raises t. They are added to
// gradient[atom][axis]. A single function has b_atom = -1. `first`: the first of these pairs.
KERNEL(THREADS) ENTRY(PARAMETERS) {
    SCRATCH
    const auto total = SUMS(gradient);
    const Polynomials a = {a_start, a_power, a_value}, b = {b_start, b_power, b_value};
    FOR_TEAMS(item) {
        const INDEX place = first + item, k = u[place], l = v[place];
        const Pair pair = j_pair(a_exponent, a_centre, k, b_exponent, b_centre, l);
        const Expansion axes = j_axes(scratch, pair, la + 2, lb + 1);
        const double* D = X + j_place(origin, row, rows, columns, k, l);
        const double* potential = V + rank[place] * bra_stride;
        double on_A[3] = {0, 0, 0}, on_both[3] = {0, 0, 0};
        FOR_MEMBERS(t, 0, tuples) {
            const int* tuple = table + 8 * t;
            double by_A[3] = {0, 0, 0}, by_P[3] = {0, 0, 0};
            for (int m = 0; m < rows; ++m)
                for (int n = 0; n < columns; ++n) {
                    for (int i = a.start[m]; i < a.start[m + 1]; ++i)
                        for (int j = b.start[n]; j < b.start[n + 1]; ++j) {
                            double same[3], raised[3], moved[3];
                            for (int x = 0; x < 3; ++x) {
                                const int power = a.power[3 * i + x];
                                const double* E = axes.row(x, power, b.power[3 * j + x]) + tuple[x];
                                const int step = axes.js * axes.ts;
                                same[x] = E[0];
                                raised[x] = tuple[x] ? E[-1] : 0;
                                moved[x] = 2 * pair.alpha * E[step] - (power ? power * E[-step] : 0);
                            }
                            const double value = D[m * row + n] * a.value[i] * b.value[j];
                            const double yz = value * same[1] * same[2], xz = value * same[0] * same[2],
                                         xy = value * same[0] * same[1];
                            by_A[0] += moved[0] * yz, by_P[0] += raised[0] * yz;
                            by_A[1] += moved[1] * xz, by_P[1] += raised[1] * xz;
                            by_A[2] += moved[2] * xy, by_P[2] += raised[2] * xy;
                        }
                }
            const double here = potential[t * value_stride];
            for (int x = 0; x < 3; ++x) {
                on_A[x] = vfma(by_A[x], here, on_A[x]);
                on_both[x] = vfma(by_P[x], here, on_both[x]);
            }
        }
        const double unit = 2 * J_UNIT * factor[place];
        for (int x = 0; x < 3; ++x) {
            const double one = unit * team_sum(on_A[x]), both = unit * team_sum(on_both[x]);
            if (FIRST_MEMBER) {
                ADD(total + 3 * a_atom[k] + x, one);
                if (b_atom[l] >= 0) ADD(total + 3 * b_atom[l] + x, both - one);
            }
        }
        BARRIER;
    }
}
