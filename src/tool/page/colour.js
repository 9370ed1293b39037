/* Colours: one for each group of blocks, far apart for the groups that hold most. */
const colour = (() => {
  /* OKLCH to 0xAABBGGRR, the order of bytes in image data on every machine that runs browsers. */
  function oklch(l, c, h) {
    const a = c * Math.cos(h * Math.PI / 180), b = c * Math.sin(h * Math.PI / 180);
    const x = (l + 0.3963377774 * a + 0.2158037573 * b) ** 3, y = (l - 0.1055613458 * a - 0.0638541728 * b) ** 3;
    const z = (l - 0.0894841775 * a - 1.2914855480 * b) ** 3;
    const gamma = (v) => Math.round(255 * Math.min(1, Math.max(0, v <= 0.0031308 ? 12.92 * v : 1.055 * v ** (1 / 2.4) - 0.055)));
    const r = gamma(4.0767416621 * x - 3.3077115913 * y + 0.2309699292 * z);
    const g = gamma(-1.2684380046 * x + 2.6097574011 * y - 0.3413193965 * z);
    return (0xff000000 | gamma(-0.0041960863 * x - 0.7034186147 * y + 1.7076147010 * z) << 16 | g << 8 | r) >>> 0;
  }

  const css = (abgr) => `rgb(${abgr & 255} ${abgr >> 8 & 255} ${abgr >> 16 & 255})`;

  /* Part of the way from one colour to another. */
  function mix(from, to, part) {
    let out = 0xff000000;
    for (const shift of [0, 8, 16]) {
      const a = from >> shift & 255, b = to >> shift & 255;
      out |= Math.round(a + (b - a) * part) << shift;
    }
    return out >>> 0;
  }

  /* The colours that the canvases need, as the style sheet has them now: "#rrggbb" each. */
  function theme() {
    const style = getComputedStyle(document.documentElement), out = {};
    for (const name of ["card", "ink", "quiet", "rule", "tiny", "held", "edge", "reserved", "active", "bad", "span", "free", "stuck"]) {
      const n = parseInt(style.getPropertyValue("--" + name).trim().slice(1), 16);
      out[name] = (0xff000000 | (n & 255) << 16 | n & 0xff00 | n >> 16) >>> 0;
    }
    return out;
  }

  /* Ranks by bytes at the peak and at the failure, then by bytes times duration. */
  function rank(m, by) {
    const {of} = model.groupings[by], weight = new Map();
    const moments = m.oom ? [m.peak, m.oom.entry] : [m.peak];
    for (let i = 0; i < m.lives; i++) {
      const key = of(m, i), end = Math.min(m.end[i], m.entries);
      let w = m.size[i] * (end - m.begin[i]) / (m.entries || 1);
      for (const e of moments) if (model.alive(m, i, e)) w += m.size[i];
      weight.set(key, (weight.get(key) || 0) + w);
    }
    return [...weight].sort((a, b) => b[1] - a[1]).map(([key]) => key);
  }

  /* A few steps of the golden angle keep neighbours in rank apart in hue; lightness tells the rounds apart. */
  function palette(keys, dark, by) {
    const out = new Map();
    const lifes = dark ? [oklch(0.66, 0.17, 25), oklch(0.72, 0.12, 75), oklch(0.6, 0.09, 240), oklch(0.45, 0.03, 240)]
                       : [oklch(0.6, 0.19, 25), oklch(0.75, 0.14, 75), oklch(0.68, 0.1, 240), oklch(0.83, 0.03, 240)];
    keys.forEach((key, i) => {
      const l = (dark ? 0.62 : 0.7) + [0, 0.07, -0.08][i % 3], c = i < 24 ? 0.115 : 0.055;
      out.set(key, by === "life" ? lifes[key] : oklch(l, c, (250 + i * 137.508) % 360));
    });
    return out;
  }

  /* Groups in order of rank, with their colours. */
  function scheme(m, by, dark) {
    const keys = rank(m, by);
    return {by, dark, keys, of: palette(keys, dark, by)};
  }

  return {css, mix, theme, scheme};
})();
