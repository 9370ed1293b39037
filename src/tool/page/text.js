/* Words, numbers and elements. */
const text = (() => {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const counts = new Intl.NumberFormat("en");

  /* "1.50 GiB". */
  function bytes(value) {
    let unit = 0, v = Math.abs(value);
    while (v >= 1024 && unit < units.length - 1) { v /= 1024; unit++; }
    const digits = unit === 0 ? 0 : v < 10 ? 2 : v < 100 ? 1 : 0;
    return `${value < 0 ? "−" : ""}${v.toFixed(digits)} ${units[unit]}`;
  }

  /* For ticks: no more digits than the number has. */
  function tick(value) {
    let unit = 0, v = value;
    while (v >= 1024 && unit < units.length - 1) { v /= 1024; unit++; }
    return `${+v.toFixed(3)} ${units[unit]}`;
  }

  const signed = (value) => (value > 0 ? "+" : "") + (value === 0 ? "0" : bytes(value));
  const count = (value) => counts.format(value);
  const plural = (n, one, many = one + "s") => `${count(n)} ${n === 1 ? one : many}`;
  const percent = (part, whole) => whole > 0 ? `${(100 * part / whole).toFixed(part / whole < 0.0995 ? 1 : 0)} %` : "0 %";

  /* Microseconds in words. */
  function time(us) {
    if (us < 1000) return `${Math.round(us)} µs`;
    if (us < 1e6) return `${(us / 1e3).toFixed(us < 1e4 ? 2 : 1)} ms`;
    if (us < 6e7) return `${(us / 1e6).toFixed(2)} s`;
    return `${Math.floor(us / 6e7)} min ${((us % 6e7) / 1e6).toFixed(0)} s`;
  }

  const address = (value) => "0x" + BigInt(value).toString(16);

  /* An element: el("td", {class: "number"}, "text", child, ...). Strings always become text nodes, so
   * nothing of the document can become markup. */
  function el(name, attributes = {}, ...children) {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (value === null || value === undefined || value === false) continue;
      if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
      else node.setAttribute(key, value === true ? "" : value);
    }
    node.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined));
    return node;
  }

  const fill = (node, ...children) => node.replaceChildren(...children.flat(Infinity).filter((c) => c !== null && c !== undefined));
  const $ = (id) => document.getElementById(id);

  return {bytes, tick, signed, count, plural, percent, time, address, el, fill, $};
})();
const {el, fill, $} = text;
