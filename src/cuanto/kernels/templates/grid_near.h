// Lists of atoms for groups of points: first the NEAREST atoms in order, then all others that may have a share of a point of
// the group, then (in any order) those that only limit the shares of others.
//
// The points are within `radius` of `centre`, where mu_ij is at least (d_i - d_j - 2 radius) / R_ij; cell functions
// fall with mu, and a product of them over the nearest atoms is a bound on the share of atom i.
FN double highest(double m, double shift) {
    m = m > 1 ? 1 : m < -1 ? -1 : m;
#if STRATMANN
    return m >= REACH ? 0 : 1;
#else
    double nu = m + shift * (1 - m * m);
    for (int k = 0; k < 3; ++k) nu = nu * (1.5 - 0.5 * nu * nu);
    return 0.5 - 0.5 * nu;
#endif
}

// Returns the number of atoms that may have a share; `count`: length of the list, which has room for all atoms.
FN int near_atoms(const double* centre, double radius, INDEX atoms, const double* atom, const double* pair, int* list,
                  double* distance, int* count) {
    int nearest[NEAREST], found = 0;
    double least[NEAREST];
    for (INDEX a = 0; a < atoms; ++a) {
        const double x = centre[0] - atom[3 * a], y = centre[1] - atom[3 * a + 1], z = centre[2] - atom[3 * a + 2];
        const double d = vsqrt(x * x + y * y + z * z);
        distance[a] = d;
        if (found == NEAREST && d >= least[NEAREST - 1]) continue;
        int k = found < NEAREST ? found++ : NEAREST - 1;
        for (; k > 0 && least[k - 1] > d; --k) least[k] = least[k - 1], nearest[k] = nearest[k - 1];
        least[k] = d, nearest[k] = (int)a;
    }
    double furthest = least[found - 1];
    int first = found, last = (int)atoms;
    for (int k = 0; k < found; ++k) list[k] = nearest[k];
#if STRATMANN
    const double limit = HORIZON * least[0] + 2 * radius / (1 - REACH);  // with R_ij <= d_i + d_j
#endif
    for (INDEX a = 0; a < atoms; ++a) {
#if STRATMANN
        if (distance[a] > limit && distance[a] > least[found - 1]) {
            list[--last] = (int)a;
            continue;
        }
#endif
        double bound = 1;
        bool listed = false;
        if (distance[a] <= least[found - 1])
            for (int k = 0; k < found; ++k) listed = listed || nearest[k] == a;
        if (listed) continue;
        for (int k = 0; k < found && bound > VANISHED; ++k) {
            const double* other = pair + 2 * (atoms * a + nearest[k]);
            bound *= highest((distance[a] - least[k] - 2 * radius) * other[0], other[1]);
        }
        if (bound > VANISHED) {
            list[first++] = (int)a;
            furthest = distance[a] > furthest ? distance[a] : furthest;
        } else {
            list[--last] = (int)a;
        }
    }
    int end = (int)atoms;
#if STRATMANN
    const double reach = HORIZON * (furthest + radius) + radius;
    end = first;
    for (int k = first; k < atoms; ++k)
        if (distance[list[k]] <= reach) list[end++] = list[k];
#endif
    *count = end;
    return first;
}

KERNEL(NEAR_THREADS) ENTRY(PARAMETERS) {
    FOR_ITEMS(g)
        list_rows[g] = near_atoms(centre + 3 * g, radius[g], atoms, atom, pair, list_atom + g * atoms,
                                  list_distance + g * atoms, list_count + g);
}
