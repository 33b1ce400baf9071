// sum_g f_g d ln(share_g)/dR of all atoms: points move with their own atoms, and borders with both of theirs. A block of at most
// BLOCK_POINTS points is a team's; every member has a vector of points.
//
// d ln share = sum_ij ([i = own] - P_i / sum_k P_k) s'(mu_ij) / s(mu_ij) dmu_ij, mu_ij = (r_i - r_j) / R_ij; rows i whose P
// vanishes next to others are left out. Sums go to `out` [atom][axis].
#define MOST_ROWS 64
#define LEAST_SHARE REAL(1e-13)   // of a point, next to those of nearer atoms
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

FN void add(double* place, const Three& value, REAL factor) {
    UNROLL for (int x = 0; x < 3; ++x) FOR_LANES(LANES) ADD(place + x, LANE(value.x[x]) * factor);
}

// A row that has a share of any of the points: its place in the list, P, distance, derivative by that distance and by the borders.
struct Row {
    int place;
    VEC P, r, by_distance;
    Three by_border;
};

KERNEL(BLOCK_POINTS) ENTRY(PARAMETERS) {
    FOR_TEAMS(block) {
        const INDEX group = block_list[block], first = block_point[block], points = block_point[block + 1] - first;
        const int rows = list_rows[group], count = list_count[group], *list = list_atom + group * atoms;
        double* sum = SUMS(out);
#if STRATMANN
        const REAL* far = list_distance + group * atoms;
#define CELL_IS_ONE(i, j, scale) ((far[list[j]] - far[list[i]] - 2 * radius[group]) * (scale) > REACH)
#else
#define CELL_IS_ONE(i, j, scale) false
#endif
        FOR_MEMBERS(n, 0, BLOCK_POINTS / LANES) {
            const INDEX left = points - n * LANES, at = first + (left > 0 ? n * LANES : 0);
            const int here = left < LANES ? (left > 0 ? (int)left : 0) : LANES;
            Three r, point = Three{{vset(0), vset(0), vset(0)}};
            UNROLL for (int x = 0; x < 3; ++x) r.x[x] = vread(position + x * stride + at, here);
            VEC mine = vset(-1), total = vset(0);
            FOR_LANES(here) LANE(mine) = own[at + lane];
            const VEC f = left > 0 ? vread(weight + at, here) : vset(0);
            Row row[MOST_ROWS];
            int used = 0;
            const int possible = vany(f * f > LEAST_FACTOR * LEAST_FACTOR) ? rows : 0;
            NO_UNROLL for (int i = 0; i < possible; ++i) {
                const REAL* pairs = pair + 2 * atoms * list[i];
                const VEC ri = length(from_atom(r, atom + 3 * (INDEX)list[i]));
                const VEC least = vselect(total * LEAST_SHARE > VANISHED, total * LEAST_SHARE, vset(VANISHED));
                VEC P = vset(1);
                bool alive = true;
                NO_UNROLL for (int j = 0; j < count && alive; ++j) {
                    const REAL* other = pairs + 2 * list[j];
                    if (j == i || CELL_IS_ONE(i, j, other[0])) continue;
                    P = P * cell((ri - length(from_atom(r, atom + 3 * (INDEX)list[j]))) * other[0], other[1]);
                    if (j < NEAREST || (j & 7) == 0) alive = vany(P > least);
                }
                if (!alive || !vany(P > least) || used == MOST_ROWS) continue;
                total = total + P;
                row[used++] = Row{i, P, ri, vset(0), Three{{vset(0), vset(0), vset(0)}}};
            }
            const VEC inverse = vselect(total > REAL(0), vrcp(vselect(total > REAL(0), total, vset(1))), vset(0));
            int kept = 0;
            NO_UNROLL for (int a = 0; a < used; ++a) {
                const VEC own_row = vselect(mine == REAL(list[row[a].place]), vset(1), vset(0));
                const VEC share = f * (own_row - row[a].P * inverse);
                if (!vany(share * share > LEAST_FACTOR * LEAST_FACTOR)) continue;
                row[kept] = row[a];
                row[kept++].P = share;
            }
            used = kept;
            const int others = team_most(used) ? count : 0;
            NO_UNROLL for (int j = 0; j < others; ++j) {
                const REAL* R = atom + 3 * (INDEX)list[j];
                const Three d = from_atom(r, R);
                const VEC rj = length(d);
                VEC by_distance = vset(0);
                Three force = Three{{vset(0), vset(0), vset(0)}};
                NO_UNROLL for (int a = 0; a < used; ++a) {
                    Row& one = row[a];
                    const REAL* other = pair + 2 * (atoms * list[one.place] + list[j]);
                    if (one.place == j || CELL_IS_ONE(one.place, j, other[0])) continue;
                    const VEC mu = (one.r - rj) * other[0], t = one.P * relative_slope(mu, other[1]) * other[0];
                    const VEC along = t * mu * other[0];
                    const REAL* A = atom + 3 * (INDEX)list[one.place];
                    by_distance = by_distance - t;
                    one.by_distance = one.by_distance + t;
                    UNROLL for (int x = 0; x < 3; ++x) {
                        const VEC border = along * (A[x] - R[x]);
                        force.x[x] = force.x[x] + border;
                        one.by_border.x[x] = one.by_border.x[x] + border;
                    }
                }
                const VEC scale = by_distance * vrcp(vselect(rj > REAL(0), rj, vset(1)));
                UNROLL for (int x = 0; x < 3; ++x) {
                    const VEC moved = scale * d.x[x];
                    force.x[x] = force.x[x] - moved;
                    point.x[x] = point.x[x] + moved;
                }
                force = team_sum(force);
                if (FIRST_MEMBER) add(sum + 3 * list[j], force, 1);
            }
            NO_UNROLL for (int a = 0; a < used; ++a) {
                const Three d = from_atom(r, atom + 3 * (INDEX)list[row[a].place]);
                const VEC scale = row[a].by_distance * vrcp(vselect(row[a].r > REAL(0), row[a].r, vset(1)));
                Three force;
                UNROLL for (int x = 0; x < 3; ++x) {
                    const VEC moved = scale * d.x[x];
                    force.x[x] = moved + row[a].by_border.x[x];
                    point.x[x] = point.x[x] + moved;
                }
                add(sum + 3 * list[row[a].place], force, -1);
            }
            UNROLL for (int x = 0; x < 3; ++x)
                FOR_LANES(here) ADD(sum + 3 * (INDEX)own[at + lane] + x, LANE(point.x[x]));
        }
    }
}
