// Pairs (u, v) of primitives of two kinds, from their numbers (j_select.h): the Hermite expansions E[pair][f][t] of all
// products f of their functions, bounds sqrt (f|f) of the largest product with the largest contraction coefficients,
// and records: sqrt(p) and the centre (`geometry`), the factor weight p^-3/2, and their positions along a curve in
// space, then by exponents. weight: 2 for pairs, 1 for a function with itself and for single functions.
FN INDEX j_spread(INDEX x) {  // moves bit k of x to bit 3k
    x = (x | x << 32) & 0x1f00000000ffffLL;
    x = (x | x << 16) & 0x1f0000ff0000ffLL;
    x = (x | x << 8) & 0x100f00f00f00f00fLL;
    x = (x | x << 4) & 0x10c30c30c30c30c3LL;
    return (x | x << 2) & 0x1249249249249249LL;
}

// Morton's curve through cells of 1 Bohr, 2^12 in each direction; the exponent bits of p come last: 47 bits in all.
FN INDEX j_along(const double* P, double p) {
    INDEX code = 0;
    for (int x = 0; x < 3; ++x) {
        double cell = P[x] + 2048;
        cell = cell < 0 ? 0 : cell > 4095 ? 4095 : cell;
        code |= j_spread(INDEX(cell)) << x;
    }
    return code << 11 | bits_of(p) >> 52;
}

KERNEL(THREADS) ENTRY(PARAMETERS) {
    SCRATCH
    const Polynomials a = {a_start, a_power, a_value}, b = {b_start, b_power, b_value};
    FOR_TEAMS(item) {
        const INDEX place = first + item, number = numbers[from + item] - base;
        const INDEX k = number / count, l = number % count;
        const Pair pair = j_pair(a_exponent, a_centre, k, b_exponent, b_centre, l);
        const Expansion axes = j_axes(scratch, pair, la + 1, lb + 1);
        const double root = vsqrt(pair.p);
        double *g = scratch + 3 * axes.size, largest = 0;
        for (int m = 0; m < rows; ++m)
            for (int n = 0; n < columns; ++n) {
                double* made = E + ((item * rows + m) * columns + n) * tuples;
                FOR_MEMBERS(t, 0, tuples) {
                    const int* tuple = table + 8 * t;
                    double sum = 0;
                    for (int i = a.start[m]; i < a.start[m + 1]; ++i)
                        for (int j = b.start[n]; j < b.start[n + 1]; ++j) {
                            double product = a.value[i] * b.value[j];
                            for (int x = 0; x < 3; ++x)
                                product *= axes.row(x, a.power[3 * i + x], b.power[3 * j + x])[tuple[x]];
                            sum += product;
                        }
                    made[t] = sum;
                    for (int degree = tuple[0] + tuple[1] + tuple[2]; degree > 0; --degree) sum *= root;
                    g[t] = sum;
                }
                BARRIER;
                double mine = 0;
                FOR_MEMBERS(c, 0, tuples) {  // W is a lower triangle
                    double sum = 0;
                    for (int t = (int)c; t < tuples; ++t) sum = vfma(g[t], W[t * tuples + c], sum);
                    mine = vfma(sum, sum, mine);
                }
                const double scale = a_scale[k * rows + m] * b_scale[l * columns + n];
                const double size = team_sum(mine) * scale * scale;
                largest = size > largest ? size : largest;
            }
        if (FIRST_MEMBER) {
            double* P = geometry + 4 * place;
            u[place] = k;
            v[place] = l;
            P[0] = root;
            for (int x = 0; x < 3; ++x) P[1 + x] = pair.A[x] + pair.beta / pair.p * (pair.B[x] - pair.A[x]);
            factor[place] = (same && k == l ? 1.0 : weight) / (pair.p * root);
            bound[place] = J_SELF_REPULSION * vsqrt(largest) / (pair.p * vsqrt(root));
            along[place] = j_along(P + 1, pair.p);
        }
        BARRIER;
    }
}
