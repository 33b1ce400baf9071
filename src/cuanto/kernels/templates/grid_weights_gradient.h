// sum_g f_g d ln(share_g)/dR of all atoms: points move with their own atoms, cell boundaries with both of theirs. A team has
// a block of at most BLOCK_POINTS points, and every member a vector of points.
//
// d ln share = sum_ij ([i = own] - P_i / sum_k P_k) s'(mu_ij) / s(mu_ij) dmu_ij, mu_ij = (r_i - r_j) / R_ij; rows i whose P
// is negligible next to others are skipped. Sums go to `out` [atom][axis].
#define MOST_ROWS (LANES > 1 ? 128 : 64)  // rows with a share of the points of a vector, many more than occur
#define LEAST_SHARE REAL(1e-13)   // smallest significant share of a point
#define LEAST_FACTOR REAL(1e-15)  // Hartree

struct Three {
    VEC x[3];
    FN_MEMBER Three operator+(const Three& other) const {
        return Three{{x[0] + other.x[0], x[1] + other.x[1], x[2] + other.x[2]}};
    }
};

FN Three from_atom(const Three& r, const REAL* R) { return Three{{r.x[0] - R[0], r.x[1] - R[1], r.x[2] - R[2]}}; }
FN VEC length(const Three& d) { return vsqrt(d.x[0] * d.x[0] + d.x[1] * d.x[1] + d.x[2] * d.x[2]); }

// s'(mu) / s(mu)
FN VEC relative_slope(VEC mu, REAL shift) {
#if STRATMANN
    VEC m = mu * (1 / REACH);
    m = vselect(m > REAL(1), vset(1), vselect(m < REAL(-1), vset(-1), m));
    const VEC rest = vset(1) - m * m, slope = rest * rest * rest * (REAL(-35.0 / 32) / REACH), s = cell(mu, shift);
#else
    VEC nu = vfma(vset(shift), vset(1) - mu * mu, mu), slope = vset(REAL(-0.5)) + mu * shift;
    UNROLL for (int k = 0; k < 3; ++k) {
        slope = slope * (vset(REAL(1.5)) - nu * nu * REAL(1.5));
        nu = nu * (vset(REAL(1.5)) - nu * nu * REAL(0.5));
    }
    const VEC s = vset(REAL(0.5)) - nu * REAL(0.5);
#endif
    return vselect(s > REAL(0), slope * vrcp(vselect(s > REAL(0), s, vset(1))), vset(0));
}

// The list of a block of points (grid_near.h): `rows` may have a share of a point, the others only limit their shares.
struct List {
    const int* atoms;
    int rows, count;
    INDEX all;  // atoms of the molecule
    const REAL *position, *pair, *far;
    REAL radius;
    FN_MEMBER const REAL* at(int i) const { return position + 3 * (INDEX)atoms[i]; }
    FN_MEMBER const REAL* border(int i, int j) const { return pair + 2 * (all * atoms[i] + atoms[j]); }
    FN_MEMBER bool apart(int i, int j) const {  // the cell function of i and j is 1 at these points
#if STRATMANN
        return i == j || (far[atoms[j]] - far[atoms[i]] - 2 * radius) * border(i, j)[0] > REACH;
#else
        return i == j;
#endif
    }
};

// A row with a share of any point of a vector: its place in the list, P (later the factor of its derivative), distance, and
// the derivatives with respect to the distance and to the motion of its boundaries.
struct Row {
    int place;
    VEC P, r, by_distance;
    Three by_border;
};

// Find the rows whose factor f ([i = own] - P_i / sum_k P_k) is significant; it replaces P.
FN int find_rows(const List& list, const Three& r, VEC f, VEC mine, Row* row) {
    VEC total = vset(0);
    int used = 0, kept = 0;
    NO_UNROLL for (int i = 0; i < list.rows; ++i) {
        const VEC ri = length(from_atom(r, list.at(i)));
        const VEC least = vselect(total * LEAST_SHARE > VANISHED, total * LEAST_SHARE, vset(VANISHED));
        VEC P = vset(1);
        bool alive = true;
        NO_UNROLL for (int j = 0; j < list.count && alive; ++j) {
            if (list.apart(i, j)) continue;
            const REAL* border = list.border(i, j);
            P = P * cell((ri - length(from_atom(r, list.at(j)))) * border[0], border[1]);
            if (j < NEAREST || (j & 7) == 0) alive = vany(P > least);
        }
        if (!alive || !vany(P > least) || used == MOST_ROWS) continue;
        total = total + P;
        row[used++] = Row{i, P, ri, vset(0), Three{{vset(0), vset(0), vset(0)}}};
    }
    const VEC inverse = shared(vset(1), total);
    NO_UNROLL for (int a = 0; a < used; ++a) {
        const VEC own_row = vselect(mine == REAL(list.atoms[row[a].place]), vset(1), vset(0));
        const VEC factor = f * (own_row - row[a].P * inverse);
        if (!vany(factor * factor > LEAST_FACTOR * LEAST_FACTOR)) continue;
        row[kept] = row[a];
        row[kept++].P = factor;
    }
    return kept;
}

// The force on an atom of a derivative with respect to its distance from the point; the same is added for the point.
FN Three distance_force(VEC by_distance, VEC distance, const Three& d, Three& point) {
    const VEC scale = by_distance * vrcp(vselect(distance > REAL(0), distance, vset(1)));
    const Three force = {{scale * d.x[0], scale * d.x[1], scale * d.x[2]}};
    point = point + force;
    return force;
}

// The force on atom j of its boundaries with all rows; the derivatives of the rows are accumulated.
FN Three border_force(const List& list, const Three& r, int j, Row* row, int used, Three& point) {
    const REAL* R = list.at(j);
    const Three d = from_atom(r, R);
    const VEC rj = length(d);
    VEC by_distance = vset(0);
    Three force = {{vset(0), vset(0), vset(0)}};
    NO_UNROLL for (int a = 0; a < used; ++a) {
        Row& one = row[a];
        if (list.apart(one.place, j)) continue;
        const REAL *border = list.border(one.place, j), *A = list.at(one.place);
        const VEC mu = (one.r - rj) * border[0], t = one.P * relative_slope(mu, border[1]) * border[0];
        by_distance = by_distance + t;
        one.by_distance = one.by_distance + t;
        const VEC along = t * mu * border[0];
        UNROLL for (int x = 0; x < 3; ++x) {
            const VEC move = along * (A[x] - R[x]);
            force.x[x] = force.x[x] + move;
            one.by_border.x[x] = one.by_border.x[x] + move;
        }
    }
    const Three pull = distance_force(-by_distance, rj, d, point);
    UNROLL for (int x = 0; x < 3; ++x) force.x[x] = force.x[x] - pull.x[x];
    return force;
}

template <class P>
FN void add(P place, const Three& value, REAL factor) {
    UNROLL for (int x = 0; x < 3; ++x) FOR_LANES(LANES) ADD(place + x, LANE(value.x[x]) * factor);
}

KERNEL(BLOCK_POINTS) ENTRY(PARAMETERS) {
    FOR_TEAMS(block) {
        const INDEX group = block_list[block], first = block_point[block], points = block_point[block + 1] - first;
        const List list = {list_atom + group * atoms, list_rows[group], list_count[group], atoms, atom, pair,
                           list_distance + group * atoms, radius[group]};
        const auto sum = SUMS(out);
        FOR_MEMBERS(n, 0, BLOCK_POINTS / LANES) {
            const INDEX left = points - n * LANES, at = first + (left > 0 ? n * LANES : 0);
            const int here = left < LANES ? (left > 0 ? (int)left : 0) : LANES;
            Three r, point = {{vset(0), vset(0), vset(0)}};
            UNROLL for (int x = 0; x < 3; ++x) r.x[x] = vread(position + x * stride + at, here);
            VEC mine = vset(-1);
            FOR_LANES(here) LANE(mine) = own[at + lane];
            const VEC f = left > 0 ? vread(weight + at, here) : vset(0);
            Row row[MOST_ROWS];
            const int used = vany(f * f > LEAST_FACTOR * LEAST_FACTOR) ? find_rows(list, r, f, mine, row) : 0;
            const int others = team_most(used) ? list.count : 0;
            NO_UNROLL for (int j = 0; j < others; ++j) {
                const Three force = team_sum(border_force(list, r, j, row, used, point));
                if (FIRST_MEMBER) add(sum + 3 * list.atoms[j], force, 1);
            }
            NO_UNROLL for (int a = 0; a < used; ++a) {
                const Three d = from_atom(r, list.at(row[a].place));
                const Three force = distance_force(row[a].by_distance, row[a].r, d, point) + row[a].by_border;
                add(sum + 3 * list.atoms[row[a].place], force, -1);
            }
            UNROLL for (int x = 0; x < 3; ++x)
                FOR_LANES(here) ADD(sum + 3 * (INDEX)own[at + lane] + x, LANE(point.x[x]));
        }
    }
}
