// SPDX-License-Identifier: Apache-2.0
//
// Polynomial arithmetic on extents and the simplifications that make equal extents textually equal.
// Arithmetic that leaves 64 bits gives a symbol that has no value, so that it is noticed wherever a
// number is wanted.
#include "support/Extent.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

#include "support/ExtentParser.h"

namespace dovetail {

namespace {

constexpr size_t kMaxTerms = 4096;
constexpr const char *kOverflow = "_overflow_";

int64_t floorDivide(int64_t a, int64_t b) {
  int64_t quotient = a / b;
  return quotient - ((a % b != 0) && ((a < 0) != (b < 0)));
}

int64_t floorModulo(int64_t a, int64_t b) {
  int64_t rest = a % b;
  return rest != 0 && ((rest < 0) != (b < 0)) ? rest + b : rest;
}

bool isFunction(std::string_view atom) { return atom.find('(') != std::string_view::npos; }

// A monomial order: by degree, then by the powers of the atoms in their order. Products keep it.
template <typename Terms> auto leading(const Terms &terms) {
  return std::max_element(terms.begin(), terms.end(), [](const auto &a, const auto &b) {
    return a.first.size() != b.first.size() ? a.first.size() < b.first.size() : a.first < b.first;
  });
}

// Division that stays inside 64 bits and has a divisor.
bool divisible(int64_t a, int64_t b) {
  return b != 0 && !(a == std::numeric_limits<int64_t>::min() && b == -1);
}

/// min(a, max(a, c)) is a, and max(a, min(a, c)) too; min(a, min(a, c)) is min(a, c). Where one of
/// `a` and `b` is a call of `name` or of `opposite` with the other for an argument: what it comes
/// to.
std::optional<Extent> absorb(std::string_view name, std::string_view opposite, const Extent &a,
                             const Extent &b) {
  for (auto [call, other] : {std::pair(&a, &b), std::pair(&b, &a)}) {
    std::string text = call->isStatic() ? std::string() : call->text();
    auto parts = isFunction(text) ? ExtentParser::splitCall(text) : std::nullopt;
    if (!parts || (parts->first != *other && parts->second != *other))
      continue;
    if (parts->name == name)
      return *call;
    if (parts->name == opposite)
      return *other;
  }
  return std::nullopt;
}

} // namespace

Extent::Extent(int64_t value) {
  if (value != 0)
    terms[{}] = value;
}

Extent Extent::atom(std::string text) {
  Extent result;
  result.terms[{std::move(text)}] = 1;
  return result;
}

Extent Extent::overflowed() { return atom(kOverflow); }

bool Extent::isOverflow() const {
  return std::any_of(terms.begin(), terms.end(), [](const auto &term) {
    return std::any_of(term.first.begin(), term.first.end(), [](const std::string &factor) {
      return factor.find(kOverflow) != std::string::npos;
    });
  });
}

Extent Extent::symbol(std::string_view name) {
  std::string clean(name);
  for (size_t i = 0; i < clean.size(); ++i)
    if (!isSymbolCharacter(clean[i]) || clean.substr(i, 2) == "..") // ".." is for ranges
      clean[i] = '_';
  if (clean.empty() || clean[0] == '.' || (clean[0] >= '0' && clean[0] <= '9'))
    clean.insert(clean.begin(), '_');
  return atom(std::move(clean));
}

bool Extent::isStatic() const {
  return terms.empty() || (terms.size() == 1 && terms.begin()->first.empty());
}

int64_t Extent::value() const {
  assert(isStatic());
  return terms.empty() ? 0 : terms.begin()->second;
}

std::optional<int64_t> Extent::staticValue() const {
  if (!isStatic())
    return std::nullopt;
  return value();
}

std::string Extent::text() const {
  if (isStatic())
    return std::to_string(value());
  std::string out;
  auto append = [&](const Monomial &monomial, int64_t coefficient) {
    if (coefficient >= 0 && !out.empty())
      out += '+';
    if (coefficient == -1 && !monomial.empty())
      out += '-';
    else if (coefficient != 1 || monomial.empty())
      out += std::to_string(coefficient) + (monomial.empty() ? "" : "*");
    for (size_t i = 0; i < monomial.size(); ++i)
      out += (i ? "*" : "") + monomial[i];
  };
  for (const auto &[monomial, coefficient] : terms)
    if (!monomial.empty())
      append(monomial, coefficient);
  if (auto constant = terms.find({}); constant != terms.end())
    append({}, constant->second);
  return out;
}

std::vector<std::string> Extent::symbols() const {
  std::set<std::string> names;
  bool complete = true;
  mapAtoms(
      [&](std::string_view name) {
        names.emplace(name);
        return std::nullopt;
      },
      complete);
  return {names.begin(), names.end()};
}

Extent Extent::mapAtoms(const std::function<std::optional<Extent>(std::string_view)> &symbolValue,
                        bool &complete) const {
  if (isStatic())
    return *this;
  Extent sum;
  for (const auto &[monomial, coefficient] : terms) {
    Extent product(coefficient);
    for (const std::string &factor : monomial) {
      std::optional<Extent> mapped;
      if (!isFunction(factor)) {
        mapped = symbolValue(factor);
      } else if (auto call = ExtentParser::splitCall(factor)) {
        Extent a = call->first.mapAtoms(symbolValue, complete);
        Extent b = call->second.mapAtoms(symbolValue, complete);
        mapped = ExtentParser::apply(call->name, a, b);
      }
      if (!mapped)
        complete = false;
      product = product * (mapped ? *mapped : atom(factor));
    }
    sum = sum + product;
  }
  return sum;
}

std::optional<int64_t> Extent::evaluate(const SymbolValues &values) const {
  // The runtime does this for every extent of a new signature: numbers only, no polynomials.
  int64_t sum = 0;
  for (const auto &[monomial, coefficient] : terms) {
    int64_t product = coefficient;
    for (const std::string &factor : monomial) {
      std::optional<int64_t> number;
      if (!isFunction(factor)) {
        if (auto found = values.find(factor); found != values.end())
          number = found->second;
      } else if (auto call = ExtentParser::splitCall(factor)) {
        auto a = call->first.evaluate(values), b = call->second.evaluate(values);
        auto applied = a && b ? ExtentParser::apply(call->name, *a, *b) : std::nullopt;
        number = applied ? applied->staticValue() : std::nullopt;
      }
      if (!number || __builtin_mul_overflow(product, *number, &product))
        return std::nullopt;
    }
    if (__builtin_add_overflow(sum, product, &sum))
      return std::nullopt;
  }
  return sum;
}

Extent Extent::substitute(const SymbolValues &values) const {
  bool complete = true;
  return mapAtoms(
      [&](std::string_view name) -> std::optional<Extent> {
        auto found = values.find(name);
        if (found == values.end())
          return std::nullopt;
        return Extent(found->second);
      },
      complete);
}

Extent Extent::substitute(const std::map<std::string, Extent, std::less<>> &values) const {
  bool complete = true;
  return mapAtoms(
      [&](std::string_view name) -> std::optional<Extent> {
        auto found = values.find(name);
        if (found == values.end())
          return std::nullopt;
        return found->second;
      },
      complete);
}

Extent operator+(const Extent &a, const Extent &b) {
  Extent result = a;
  for (const auto &[monomial, coefficient] : b.terms) {
    int64_t &sum = result.terms[monomial];
    if (__builtin_add_overflow(sum, coefficient, &sum))
      return Extent::overflowed();
    if (sum == 0)
      result.terms.erase(monomial);
  }
  return result.terms.size() > kMaxTerms ? Extent::overflowed() : result;
}

Extent operator-(const Extent &a, const Extent &b) { return a + b * Extent(-1); }

Extent operator*(const Extent &a, const Extent &b) {
  Extent result;
  for (const auto &[left, leftCoefficient] : a.terms)
    for (const auto &[right, rightCoefficient] : b.terms) {
      Extent::Monomial monomial;
      std::merge(left.begin(), left.end(), right.begin(), right.end(),
                 std::back_inserter(monomial));
      int64_t product;
      int64_t &sum = result.terms[monomial];
      if (__builtin_mul_overflow(leftCoefficient, rightCoefficient, &product) ||
          __builtin_add_overflow(sum, product, &sum) || result.terms.size() > kMaxTerms ||
          monomial.size() > 64)
        return Extent::overflowed();
      if (sum == 0)
        result.terms.erase(monomial);
    }
  return result;
}

Extent Extent::function(const char *name, const Extent &a, const Extent &b) {
  return atom(std::string(name) + "(" + a.text() + "," + b.text() + ")");
}

Extent Extent::floorDiv(const Extent &a, const Extent &b) {
  if (auto exact = exactDiv(a, b))
    return *exact;
  if (!b.isStatic() || !divisible(1, b.value()))
    return function("floordiv", a, b);
  int64_t divisor = b.value();
  if (divisor < 0) // floor(a / -b) == floor(-a / b)
    return divisor == std::numeric_limits<int64_t>::min()
               ? function("floordiv", a, b)
               : floorDiv(a * Extent(-1), Extent(-divisor));
  // floor((b*q + r) / b) == q + floor(r / b), with every coefficient of r in [0, b).
  Extent quotient, rest;
  int64_t common = divisor;
  for (const auto &[monomial, coefficient] : a.terms) {
    if (int64_t whole = floorDivide(coefficient, divisor))
      quotient.terms[monomial] = whole;
    if (int64_t part = floorModulo(coefficient, divisor)) {
      rest.terms[monomial] = part;
      if (!monomial.empty())
        common = std::gcd(common, part);
    }
  }
  if (rest.isStatic())
    return quotient;
  // With all coefficients but the constant multiples of g: floor((g*x + c) / (g*y)) == floor((x +
  // floor(c/g)) / y).
  if (common > 1) {
    for (auto &[monomial, coefficient] : rest.terms)
      coefficient /= common;
    if (auto constant = rest.terms.find({}); constant != rest.terms.end() && constant->second == 0)
      rest.terms.erase(constant);
    return quotient + floorDiv(rest, Extent(divisor / common));
  }
  // floor((floor(x / y) + c) / b) == floor((x + y*c) / (y*b)).
  Extent variable = rest;
  variable.terms.erase(Monomial());
  if (variable.terms.size() == 1 && variable.terms.begin()->second == 1 &&
      variable.terms.begin()->first.size() == 1) {
    auto inner = ExtentParser::splitStaticDivision(variable.terms.begin()->first[0]);
    int64_t product;
    if (inner && !__builtin_mul_overflow(inner->second, divisor, &product))
      return quotient +
             floorDiv(inner->first + Extent(inner->second) * (rest - variable), Extent(product));
  }
  return quotient + function("floordiv", rest, Extent(divisor));
}

Extent Extent::ceilDiv(const Extent &a, const Extent &b) {
  if (b.isStatic() && b.value() > 0)
    return floorDiv(a + b - Extent(1), b);
  if (auto exact = exactDiv(a, b))
    return *exact;
  if (b.isStatic() && b.value() < 0 && b.value() > -std::numeric_limits<int64_t>::max())
    return floorDiv(a * Extent(-1) + Extent(-b.value() - 1), Extent(-b.value()));
  return function("ceildiv", a, b);
}

Extent Extent::mod(const Extent &a, const Extent &b) {
  if (exactDiv(a, b))
    return Extent();
  if (!b.isStatic() || b.value() <= 0) {
    if (a.isStatic() && b.isStatic() && divisible(a.value(), b.value()))
      return Extent(floorModulo(a.value(), b.value()));
    return function("mod", a, b);
  }
  Extent rest;
  for (const auto &[monomial, coefficient] : a.terms)
    if (int64_t part = floorModulo(coefficient, b.value()))
      rest.terms[monomial] = part;
  return rest.isStatic() ? rest : function("mod", rest, b);
}

Extent Extent::min(const Extent &a, const Extent &b) {
  if (Extent difference = a - b; difference.isStatic())
    return difference.value() <= 0 ? a : b;
  if (auto absorbed = absorb("min", "max", a, b))
    return *absorbed;
  return b < a ? function("min", b, a) : function("min", a, b);
}

Extent Extent::max(const Extent &a, const Extent &b) {
  if (Extent difference = a - b; difference.isStatic())
    return difference.value() >= 0 ? a : b;
  if (auto absorbed = absorb("max", "min", a, b))
    return *absorbed;
  return b < a ? function("max", b, a) : function("max", a, b);
}

std::optional<Extent> Extent::exactDiv(const Extent &a, const Extent &b) {
  if (b.terms.empty())
    return std::nullopt;
  // Long division: every round removes the leading term of what is left.
  const auto lead = leading(b.terms);
  Extent rest = a, quotient;
  for (size_t round = 0; !rest.terms.empty(); ++round) {
    const auto [monomial, coefficient] = *leading(rest.terms);
    if (round > kMaxTerms || !divisible(coefficient, lead->second) ||
        coefficient % lead->second != 0 ||
        !std::includes(monomial.begin(), monomial.end(), lead->first.begin(), lead->first.end()))
      return std::nullopt;
    Extent term;
    Monomial factor;
    std::set_difference(monomial.begin(), monomial.end(), lead->first.begin(), lead->first.end(),
                        std::back_inserter(factor));
    term.terms[factor] = coefficient / lead->second;
    quotient = quotient + term;
    rest = rest - term * b;
    if (rest.terms.contains(monomial)) // arithmetic left 64 bits
      return std::nullopt;
  }
  return quotient;
}

Extent elementCount(const std::vector<Extent> &extents) {
  Extent count(1);
  for (const Extent &extent : extents)
    count = count * extent;
  return count;
}

} // namespace dovetail
