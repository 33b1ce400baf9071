// V[pair][t]: potentials sum_j c_j r^(n_j - 2) exp(-z_j r^2) about some centres, integrated with the Hermite Gaussians of pairs,
// in the units of j_collect.h and j_force.h (half of the potential). With FORCES also the forces of Hermite densities
// H[pair][t] on the centres, to one order less. R[pair][t] is memory for the potential of one centre.
//
// The potential of a Gaussian exp(-p s^2) at the distance D is a superposition of exp(-sigma D^2): r^-1 and r^-2 are integrals
// over Gaussians exp(-s r^2), by quadrature over u in [0, 1] here,
//   n = 2: (pi/q)^3/2 exp(-sigma D^2), sigma = p z / q, q = p + z
//   n = 1: 2 pi/q int exp(-sigma D^2) du, sigma = (p z + p^2 u^2) / q
//   n = 0: 2 pi^3/2 q^-1/2 int exp(-sigma D^2) du, sigma = (p z + p^2 (1 - u^2)) / q
// and n = 3 and 4 are -d/dz of n = 1 and 2. Derivatives with respect to D^2 / 2 multiply by -2 sigma, so that all terms have
// the same sign; R_t by the recurrence of Hermite Coulomb integrals.
#define PI 3.14159265358979323846
#define NEGLIGIBLE_EXPONENT 36.0  // exp(-36) is one rounding error

FN void core_add(int order, double weight, double sigma, double slope, double share, double D2, double* base) {
    // weight times sigma^m exp(-sigma D2) or, with share, -d/dz of it: slope = d sigma/dz, share = -d(log weight)/dz
    const double value = weight * vexp(-sigma * D2);
    double power = value, lower = 0;  // sigma^m and m sigma^(m - 1), times value
    for (int m = 0; m <= order; ++m) {
        base[m] += share ? (share + D2 * slope) * power - slope * lower : power;
        lower = vfma(sigma, lower, power);
        power *= sigma;
    }
}

FN void core_base(int order, int n, double z, double c, double p, double D2, const double* node, const double* weight,
                  double* base) {
    const double q = p + z, root = vsqrt(PI / q);
    if (n == 2 || n == 4) {
        const double share = n == 4 ? 1.5 / q : 0;
        core_add(order, c * root * root * root, p * z / q, p * p / (q * q), share, D2, base);
        return;
    }
    const double T = p * p / q * D2, part = T > NEGLIGIBLE_EXPONENT ? NEGLIGIBLE_EXPONENT / T : 1;
    const double low = n == 0 ? vsqrt(1 - part) : 0, high = n == 0 ? 1 : vsqrt(part);
    const double scale = c * (high - low) * (n == 0 ? 2 * PI * root : 2 * PI / q);
    for (int i = 0; i < NODES; ++i) {
        const double u = low + (high - low) * node[i], square = n == 0 ? 1 - u * u : u * u;
        const double share = n == 3 ? 1 / q : 0;
        core_add(order, scale * weight[i], (p * z + p * p * square) / q, p * p * (1 - square) / (q * q), share, D2, base);
    }
}

// Derivatives R of the potential of one centre at the distance X; false if it is negligible.
FN bool core_potential(int order, double p, double root, const double* X, int terms, const double* term, const double* node,
                       const double* weight, const int* table, double* R) {
    const double D2 = X[0] * X[0] + X[1] * X[1] + X[2] * X[2];
    double base[ORDERS];
    bool any = false;
    for (int m = 0; m <= order; ++m) base[m] = 0;
    for (int j = 0; j < terms; ++j) {
        const double z = term[3 * j + 1];
        if (p * z / (p + z) * D2 > CUTOFF) continue;
        core_base(order, (int)term[3 * j], z, term[3 * j + 2], p, D2, node, weight, base);
        any = true;
    }
    if (!any) return false;
    double unit = p * root / (2 * J_UNIT);
    for (int m = 0; m <= order; ++m) {
        base[m] *= unit;
        unit *= -2;
    }
    R[0] = base[order];
    for (int m = order - 1; m >= 0; --m) {
        const int degree = order - m, count = (degree + 1) * (degree + 2) * (degree + 3) / 6;
        for (int t = count - 1; t > 0; --t) {  // high degrees first: they read lower ones of m + 1
            const int* tuple = table + 8 * t;
            const double once = X[tuple[3]] * R[tuple[5]];
            R[t] = tuple[4] ? vfma(double(tuple[4]), R[tuple[6]], once) : once;
        }
        R[0] = base[m];
    }
    return true;
}

KERNEL(THREADS) ENTRY(PARAMETERS) {
#if FORCES
    const auto total = SUMS(gradient);
#endif
    FOR_ITEMS(item) {
        const double* pair = geometry + 4 * (first + item);
        double *here = R + item * tuples, *sum = V + item * tuples;
        for (int t = 0; t < tuples; ++t) sum[t] = 0;
        for (int c = 0; c < centres; ++c) {
            double X[3];
            for (int x = 0; x < 3; ++x) X[x] = pair[1 + x] - centre[3 * c + x];
            const int terms = term_first[c + 1] - term_first[c];
            const double* own = term + 3 * term_first[c];
            if (!core_potential(order, pair[0] * pair[0], pair[0], X, terms, own, node, weight, table, here)) continue;
            for (int t = 0; t < tuples; ++t) sum[t] += here[t];
#if FORCES
            const double *density = H + item * densities, unit = -2 * J_UNIT * factor[first + item];
            for (int x = 0; x < 3; ++x) {
                double force = 0;
                for (int t = 1; t < tuples; ++t) {
                    const int low = lowered[3 * t + x];
                    if (low >= 0) force = vfma(density[low], here[t], force);
                }
                ADD(total + 3 * centre_atom[c] + x, unit * force);
            }
#endif
        }
    }
}
