// Forces of the overlap and of the kinetic energy of pairs with the weights X[1] (overlap) and `kinetic` times X[0], added
// to gradient[atom][axis]. Integrals along one axis by the recurrence of Obara and Saika; -1/2 d^2/dx^2 of x^j exp(-beta x^2)
// lowers and raises j by two. Both integrals depend on A - B only, so that the forces on A and on B cancel.
struct Overlaps {
    const double* s;  // [axis][i][j]
    int js, size;
    double beta;
    FN_MEMBER double overlap(int x, int i, int j) const { return s[x * size + i * js + j]; }
    FN_MEMBER double kinetic(int x, int i, int j) const {
        const double* here = s + x * size + i * js + j;
        const double low = j > 1 ? 0.5 * j * (j - 1) * here[-2] : 0;
        return beta * ((2 * j + 1) * here[0] - 2 * beta * here[2]) - low;
    }
};

FN Overlaps j_overlaps(double* memory, const Pair& pair, int is, int js) {
    const double half = 0.5 / pair.p;
    FOR_MEMBERS(x, 0, 3) {
        const double AB = pair.A[x] - pair.B[x], PA = -pair.beta / pair.p * AB, PB = pair.alpha / pair.p * AB;
        double* s = memory + x * is * js;
        s[0] = vsqrt(3.14159265358979323846 / pair.p) * vexp(-pair.alpha * pair.beta / pair.p * AB * AB);
        for (int j = 1; j < js; ++j) s[j] = PB * s[j - 1] + (j > 1 ? half * (j - 1) * s[j - 2] : 0);
        for (int i = 1; i < is; ++i)
            for (int j = 0; j < js; ++j) {
                const double* low = s + (i - 1) * js + j;
                double sum = PA * low[0];
                if (i > 1) sum += half * (i - 1) * low[-js];
                if (j > 0) sum += half * j * low[-1];
                s[i * js + j] = sum;
            }
    }
    BARRIER;
    return Overlaps{memory, js, is * js, pair.beta};
}

KERNEL(THREADS) ENTRY(PARAMETERS) {
    SCRATCH
    const auto total = SUMS(gradient);
    const Polynomials a = {a_start, a_power, a_value}, b = {b_start, b_power, b_value};
    FOR_TEAMS(item) {
        const INDEX k = u[first + item], l = v[first + item];
        if (a_atom[k] == b_atom[l]) continue;
        const Pair pair = j_pair(a_exponent, a_centre, k, b_exponent, b_centre, l);
        const Overlaps axes = j_overlaps(scratch, pair, la + 2, lb + 3);
        const INDEX start = j_place(origin, row, rows, columns, k, l);
        double force[3] = {0, 0, 0};
        FOR_MEMBERS(f, 0, rows * columns) {
            const int m = (int)f / columns, n = (int)f % columns;
            const INDEX place = start + m * row + n;
            for (int i = a.start[m]; i < a.start[m + 1]; ++i)
                for (int j = b.start[n]; j < b.start[n + 1]; ++j) {
                    double s[3], t[3], ds[3], dt[3];
                    for (int x = 0; x < 3; ++x) {
                        const int p = a.power[3 * i + x], q = b.power[3 * j + x];
                        s[x] = axes.overlap(x, p, q);
                        t[x] = axes.kinetic(x, p, q);
                        ds[x] = 2 * pair.alpha * axes.overlap(x, p + 1, q);
                        dt[x] = 2 * pair.alpha * axes.kinetic(x, p + 1, q);
                        if (p > 0) {
                            ds[x] -= p * axes.overlap(x, p - 1, q);
                            dt[x] -= p * axes.kinetic(x, p - 1, q);
                        }
                    }
                    const double D = kinetic * X[place], M = X[size + place], value = a.value[i] * b.value[j];
                    for (int x = 0; x < 3; ++x) {
                        const int y = (x + 1) % 3, z = (x + 2) % 3;
                        const double rest = t[y] * s[z] + s[y] * t[z];
                        const double by_A = D * (dt[x] * s[y] * s[z] + ds[x] * rest) + M * ds[x] * s[y] * s[z];
                        force[x] = vfma(value, by_A, force[x]);
                    }
                }
        }
        for (int x = 0; x < 3; ++x) {
            const double one = 2 * team_sum(force[x]);  // the other half of the matrix
            if (FIRST_MEMBER) {
                ADD(total + 3 * a_atom[k] + x, one);
                ADD(total + 3 * b_atom[l] + x, -one);
            }
        }
        BARRIER;
    }
}
