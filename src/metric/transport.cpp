/* Clouds of unequal sizes, the one thing that is written in C++: LEMON's network simplex takes them as they
 * are. As assignments of equal sizes, with points repeated, they are solved by metric/assignment.c to the
 * same 15 digits, where one size is a multiple of the other, but in .4 to 21 times its time (500 or 1000
 * points beside 2, 3 and 5 times as many, together or half a standard deviation apart).
 *
 * LEMON's network simplex. Each source sends m / g units and each sink takes n / g, g their greatest common
 * divisor; arc i m + j goes from source i to sink j. Nothing is thrown past the C interface. */
#include "metric/transport.h"

#include <lemon/network_simplex.h>
#include <lemon/static_graph.h>

#include <cmath>
#include <cstdint>
#include <new>
#include <numeric>
#include <utility>
#include <vector>

namespace {

using Graph = lemon::StaticDigraph;
using Simplex = lemon::NetworkSimplex<Graph, std::int64_t, std::int64_t>;

void build_complete_bipartite(int n, int m, Graph &graph) {
  std::vector<std::pair<int, int>> arcs;
  arcs.reserve(static_cast<std::size_t>(n) * static_cast<std::size_t>(m));
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++) arcs.emplace_back(i, n + j);
  graph.build(n + m, arcs.begin(), arcs.end());
}

/* The two maps that LEMON reads the problem through. */
struct Supplies {
  using Key = Graph::Node;
  using Value = std::int64_t;
  int n;
  Value source, sink;
  Value operator[](Key node) const { return Graph::id(node) < n ? source : -sink; }
};

struct IntegerCosts {
  using Key = Graph::Arc;
  using Value = std::int64_t;
  const double *cost; /* [n, stride] */
  int m, stride;
  double scale;
  Value operator[](Key arc) const {
    std::size_t i = static_cast<std::size_t>(Graph::id(arc) / m),
                j = static_cast<std::size_t>(Graph::id(arc) % m);
    return std::llrint(cost[i * static_cast<std::size_t>(stride) + j] * scale);
  }
};

/* The power of two that makes the largest cost as large as the simplex can hold: potentials are sums of up to
 * n + m costs, and LEMON reserves 2^62 for its artificial arcs. */
double integer_scale(int nodes, double largest) {
  int exponent, node_bits = std::ilogb(nodes) + 1;
  std::frexp(largest, &exponent);
  return std::ldexp(1.0, 60 - node_bits - exponent);
}

} // namespace

struct Transport {
  int n, m, divisor; /* g */
  Graph graph;
  Simplex *simplex;
};

bool transport_is_available(void) { return true; }

Status transport_create(int n, int m, Transport **out) {
  *out = nullptr;
  try {
    *out = new Transport{n, m, std::gcd(n, m), {}, nullptr};
    build_complete_bipartite(n, m, (*out)->graph);
    (*out)->simplex = new Simplex((*out)->graph);
    (*out)->simplex->supplyMap(Supplies{n, m / (*out)->divisor, n / (*out)->divisor});
  } catch (const std::bad_alloc &) {
    return status_set(STATUS_INTERNAL, "out of memory: a transport problem of %d by %d points", n, m);
  }
  return STATUS_OK;
}

void transport_destroy(Transport *transport) {
  if (!transport) return;
  delete transport->simplex;
  delete transport;
}

Status transport_solve(Transport *transport, const double *cost, int stride, double largest, double *mean,
                       double *v) {
  const Graph &graph = transport->graph;
  Simplex &simplex = *transport->simplex;
  int n = transport->n, m = transport->m;
  double scale = integer_scale(n + m, largest), total = 0;
  try {
    simplex.costMap(IntegerCosts{cost, m, stride, scale});
    ASSERT(simplex.run() == Simplex::OPTIMAL);
  } catch (const std::bad_alloc &) {
    return status_set(STATUS_INTERNAL, "out of memory: a transport problem of %d by %d points", n, m);
  }
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++)
      total +=
          static_cast<double>(simplex.flow(graph.arc(i * m + j))) *
          cost[static_cast<std::size_t>(i) * static_cast<std::size_t>(stride) + static_cast<std::size_t>(j)];
  *mean = total / (static_cast<double>(n) * m / transport->divisor);
  for (int j = 0; j < m; j++) v[j] = static_cast<double>(simplex.potential(graph.node(n + j))) / scale;
  return STATUS_OK;
}
