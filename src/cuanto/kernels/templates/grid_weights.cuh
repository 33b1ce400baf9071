// A block of threads for a block of points, one thread each; distances are made again where they are needed.
struct Made {
    const int* list;
    const REAL* atom;
    REAL x, y, z;
    FN_MEMBER VEC operator()(int k) const {
        const REAL* R = atom + 3 * (INDEX)list[k];
        const REAL dx = x - R[0], dy = y - R[1], dz = z - R[2];
        return vsqrt(dx * dx + dy * dy + dz * dz);
    }
};

extern "C" __global__ void __launch_bounds__(BLOCK_POINTS) ENTRY(PARAMETERS) {
    const INDEX block = blockIdx.x, list = block_list[block], first = list * atoms;
    const INDEX g = block_point[block] + (INDEX)threadIdx.x;
    if (g >= block_point[block + 1]) return;
    const Made r{list_atom + first, atom, position[g], position[stride + g], position[2 * stride + g]};
    weight[g] *= own_share(list_rows[list], list_count[list], list_atom + first, list_distance + first, radius[list],
                           vset(REAL(own[g])), atoms, pair, r);
}
