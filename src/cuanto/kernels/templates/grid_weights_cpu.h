// Weights of the points of the blocks [begin, end), at most BLOCK_POINTS points each. For one atom (a row) after the other, the
// cell functions with all other atoms are multiplied: first those of the nearest atoms, after which the product vanishes at
// most points; then, for vectors of points where it does not, those of all other atoms whose factor is not 1.
//
// `scratch` has room for the distances [vector of points][atom of the list], computed on first use, and for one list of atoms.
#define BLOCK_VECTORS (BLOCK_POINTS / LANES)

struct Vector {
    VEC x, y, z, own, mine, total, P;
    REAL* distance;
    unsigned char* computed;
};

struct Other {  // an atom's position in the list and the parameters of its cell boundary with the atom of the row
    INDEX place;
    REAL scale, shift;
};

FN VEC distance_to(const Vector& v, int k, const int* list, const REAL* atom) {
    if (!v.computed[k]) {
        v.computed[k] = 1;
        const REAL* R = atom + 3 * list[k];
        const VEC dx = v.x - R[0], dy = v.y - R[1], dz = v.z - R[2];
        vstore(v.distance + k * LANES, vsqrt(dx * dx + dy * dy + dz * dz));
    }
    return vload(v.distance + k * LANES);
}

// Multiply by the factors of the atoms [begin, end) of `others`; returns false when the product vanishes.
FN bool add_factors(Vector& v, int i, int begin, int end, const Other* others, const int* list, const REAL* atom,
                    int check) {
    const VEC ri = distance_to(v, i, list, atom);
    VEC P = v.P;
    NO_UNROLL for (int n = begin; n < end; ++n) {
        const Other& other = others[n];
        P = P * cell((ri - distance_to(v, other.place, list, atom)) * other.scale, other.shift);
        if ((n & check) == 0 && !vany(P > VANISHED)) return false;
    }
    v.P = P;
    return vany(P > VANISHED);
}

extern "C" void ENTRY(PARAMETERS) {
    Other* others = (Other*)(scratch + BLOCK_VECTORS * LANES * atoms);
    unsigned char* computed = (unsigned char*)(others + atoms);
    for (INDEX block = begin; block < end; ++block) {
        const INDEX group = block_list[block], first = block_point[block], points = block_point[block + 1] - first;
        const int rows = list_rows[group], count = list_count[group], vectors = (int)((points + LANES - 1) / LANES);
        const int* list = list_atom + group * atoms;
        const REAL* far = list_distance + group * atoms;
        Vector vector[BLOCK_VECTORS];
        for (INDEX k = 0; k < BLOCK_VECTORS * atoms; ++k) computed[k] = 0;
        for (int n = 0; n < vectors; ++n) {
            REAL x[LANES], y[LANES], z[LANES], own_atom[LANES];
            for (int lane = 0; lane < LANES; ++lane) {
                const INDEX at = first + (n * LANES + lane < points ? n * LANES + lane : points - 1);
                x[lane] = position[at], y[lane] = position[stride + at], z[lane] = position[2 * stride + at];
                own_atom[lane] = own[at];
            }
            vector[n] = Vector{vload(x), vload(y), vload(z), vload(own_atom), vset(0), vset(0), vset(1),
                               scratch + n * LANES * atoms, computed + n * atoms};
        }
        for (int i = 0; i < rows; ++i) {
            const REAL* row = pair + 2 * atoms * list[i];
            int alive[BLOCK_VECTORS], living = 0, near = 0;
            for (int j = 0; j < count && j < NEAREST; ++j)
                if (j != i) others[near++] = Other{j, row[2 * list[j]], row[2 * list[j] + 1]};
            for (int n = 0; n < vectors; ++n) {
                vector[n].P = vset(1);
                if (add_factors(vector[n], i, 0, near, others, list, atom, 0)) alive[living++] = n;
            }
            if (living == 0) continue;
            int found = near;
            for (int j = NEAREST; j < count; ++j) {
                const Other other = {j, row[2 * list[j]], row[2 * list[j] + 1]};
#if STRATMANN
                if ((far[list[j]] - far[list[i]] - 2 * radius[group]) * other.scale > REACH) continue;  // s = 1
#endif
                if (j != i) others[found++] = other;
            }
            for (int n = 0; n < living; ++n) {
                Vector& v = vector[alive[n]];
                if (!add_factors(v, i, near, found, others, list, atom, 7)) continue;
                v.total = v.total + v.P;
                v.mine = vselect(v.own == REAL(list[i]), v.P, v.mine);
            }
        }
        for (int n = 0; n < vectors; ++n) {
            const Vector& v = vector[n];
            REAL share[LANES];
            vstore(share, shared(v.mine, v.total));
            for (int lane = 0; lane < LANES && n * LANES + lane < points; ++lane)
                weight[first + n * LANES + lane] *= share[lane];
        }
    }
}
