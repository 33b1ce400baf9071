// Weights of a block of points by a block of threads, one point for each; distances are recomputed.
struct Distance {
    const int* list;
    const REAL* atom;
    REAL x, y, z;
    FN_MEMBER VEC operator()(int k) const {
        const REAL* R = atom + 3 * (INDEX)list[k];
        const REAL dx = x - R[0], dy = y - R[1], dz = z - R[2];
        return vsqrt(dx * dx + dy * dy + dz * dz);
    }
};

// The first `rows` of the `count` atoms of the list may have a share (grid_near.h); `distance` (of every atom, by its number)
// from the centre of the points, which are within `radius` of it.
FN REAL own_share(int rows, int count, const int* list, const REAL* distance, REAL radius, int own, INDEX atoms,
                  const REAL* pair, const Distance& r) {
    REAL mine = 0, total = 0;
    NO_UNROLL for (int i = 0; i < rows; ++i) {
#if STRATMANN
        const REAL end = distance[list[i]] + 2 * radius;
#endif
        const REAL ri = r(i);
        const REAL* row = pair + 2 * atoms * list[i];
        REAL P = 1;
        bool alive = true;
        NO_UNROLL for (int j = 0; j < count && alive; ++j) {
            if (j == i) continue;
            const REAL* other = row + 2 * list[j];
#if STRATMANN
            if ((distance[list[j]] - end) * other[0] > REACH) continue;  // s = 1 at all points
#endif
            P = P * cell((ri - r(j)) * other[0], other[1]);
            if (j < 8 || (j & 7) == 0) alive = P > VANISHED;
        }
        if (!alive) continue;
        total += P;
        if (own == list[i]) mine = P;
    }
    return shared(mine, total);
}

KERNEL(BLOCK_POINTS) ENTRY(PARAMETERS) {
    const INDEX block = begin + blockIdx.x, list = block_list[block], first = list * atoms;
    const INDEX g = block_point[block] + (INDEX)threadIdx.x;
    if (g >= block_point[block + 1]) return;
    const Distance r{list_atom + first, atom, position[g], position[stride + g], position[2 * stride + g]};
    weight[g] *= own_share(list_rows[list], list_count[list], list_atom + first, list_distance + first, radius[list],
                           own[g], atoms, pair, r);
}
