// SPDX-License-Identifier: Apache-2.0
// The report in headless Chromium: what it draws, what clicks and keys do, how fast frames are.
import assert from "node:assert/strict";
import {execFileSync, spawnSync} from "node:child_process";
import {readFileSync, statSync, writeFileSync} from "node:fs";
import {basename, resolve} from "node:path";
import {after, before, test} from "node:test";
import puppeteer from "puppeteer-core";
import {hostile, training} from "./samples.mjs";

const EVENTS = 100000;
let browser, page, faults;

function report(name, data) {
  writeFileSync(`${name}.json`, JSON.stringify(data));
  execFileSync(process.env.TOOL, ["report", "-o", `${name}.html`, `${name}.json`]);
}

async function open(name, {width = 1366, height = 768, scheme = "light"} = {}) {
  if (page) await page.close();
  page = await browser.newPage();
  faults = [];
  page.on("pageerror", (e) => faults.push(e.stack || e.message));
  page.on("console", (m) => faults.push(m.text()));
  page.on("request", (r) => { if (!/^(file|data):/.test(r.url())) faults.push("asked for " + r.url()); });
  await page.setViewport({width, height});
  await page.emulateMediaFeatures([{name: "prefers-color-scheme", value: scheme}]);
  await page.goto("file://" + resolve(`${name}.html`));
  await frames(3);
}
const frames = (n) => page.evaluate(async (n) => { for (let k = 0; k < n; k++) await new Promise((r) => requestAnimationFrame(r)); }, n);
const state = () => page.evaluate(() => ({moment: app.moment, selected: app.selected, only: app.only, view: {...app.timeline.view}, peak: app.m.peak, entries: app.m.entries, oom: app.m.oom && app.m.oom.entry}));
const words = (selector) => page.$eval(selector, (n) => n.textContent);
const press = async (...keys) => { for (const k of keys) await page.keyboard.press(k); await frames(2); };
const focus = (selector) => page.focus(selector);

/* The pointer on what the timeline shows at a part of its width, in the middle of the lowest block there. */
async function blockAt(part) {
  return page.evaluate((part) => {
    const {stacked} = app.timeline, r = app.timeline.over.getBoundingClientRect(), px = Math.floor(stacked.width * part);
    for (let y = stacked.height - 2; y >= 0; y--) {
      const mark = stacked.markAt(px, y), life = mark - layer.FIRST;
      if (life < 0 || life >= app.m.lives) continue;
      return {x: r.left + (px + 0.5) * r.width / stacked.width, y: r.top + (y + 0.5) * r.height / stacked.height, life, moment: stacked.momentAt(px)};
    }
    return null;
  }, part);
}

before(async () => {
  browser = await puppeteer.launch({executablePath: process.env.CHROMIUM, headless: true, args: ["--no-sandbox", "--disable-gpu"]});
  report("training", training(EVENTS));
  report("hostile", hostile());
});
after(() => browser.close());

test("a report of 100,000 events is a few megabytes", () => {
  const bytes = statSync("training.html").size;
  console.log(`  ${EVENTS} events: ${(bytes / 2 ** 20).toFixed(2)} MiB`);
  assert.ok(bytes < 4 * 2 ** 20);
});

test("no column of the picture loses a byte", async () => {
  for (const [order, across, zoom] of [["age", "event", 1], ["group", "event", 0.3], ["age", "time", 1], ["group", "time", 0.01]]) {
    await open("training");
    await page.select("#order", order);
    await page.select("#across", across);
    await page.evaluate((zoom) => app.timeline.zoom(zoom, app.timeline.length / 3), zoom);
    await frames(2);
    const worst = await page.evaluate(() => {
      const {stacked, view} = app.timeline, per = (view.y1 - view.y0) / stacked.height;
      let worst = 0;
      for (let x = 0; x < stacked.width; x++) {
        let rows = 0;
        for (let y = 0; y < stacked.height; y++) { const k = stacked.markAt(x, y); if (k !== layer.NOTHING && k !== layer.HELD) rows++; }
        worst = Math.max(worst, Math.abs(rows - app.m.active[stacked.momentAt(x)] / per));
      }
      return worst;
    });
    assert.ok(worst <= 1, `${order} ${across} ${zoom}: ${worst} rows of pixels`);
  }
});

test("names of the file stay text", async () => {
  await open("hostile");
  assert.equal(await page.evaluate(() => window.hurt), undefined);
  assert.equal(await page.$$eval("img", (list) => list.length), 0);
  assert.equal(await page.$$eval("script", (list) => list.length), 3);
  assert.match(await words("#holders-table"), /<\/script><img src=x/);
  const at = await blockAt(0.6);
  await page.mouse.move(at.x, at.y);
  await frames(2);
  assert.match(await words("#tip"), /<\/script><img src=x/);
  assert.equal(await page.$$eval("img", (list) => list.length), 0);
  assert.deepEqual(faults, []);
});

test("a failure is where the page opens, and it says what is free and what waits", async () => {
  await open("hostile");
  const s = await state();
  assert.equal(s.moment, s.oom);
  assert.match(await words("#moment-text"), /100 MiB could not be had/);
  assert.match(await words("#shares"), /8.00 MiB waiting for another stream/);
  assert.match(await words("#shares"), /4.00 MiB free, stuck/);
  assert.match(await words("#pins-table"), /4.00 MiB/);
  assert.match(await words("#verdict"), /100.0 MiB/);
  assert.ok(await page.$$eval("#whatif-table tbody tr", (list) => list.length) >= 3);
});

test("a click chooses the moment and shows the block with its stack", async () => {
  await open("training");
  const at = await blockAt(0.5);
  await page.mouse.click(at.x, at.y);
  await frames(2);
  const s = await state();
  assert.equal(s.selected, at.life);
  assert.equal(s.moment, at.moment);
  assert.equal(await page.$$eval("#detail .stack li", (list) => list.length), 20);
  const size = await page.evaluate((i) => text.bytes(app.m.size[i]), at.life);
  assert.ok((await words("#detail h3")).includes(size));
  assert.equal(await page.evaluate(() => document.activeElement.id), "plot"); /* keys go on from here */
});

test("a click on the segments shows the same block in the timeline", async () => {
  await open("training");
  await (await page.$("#map-canvas")).click({offset: {x: 400, y: 28}});
  await frames(2);
  const s = await state();
  assert.ok(s.selected >= 0 || await page.evaluate(() => app.part !== null));
  assert.match(await words("#map-text"), /at 0x/);
});

test("the wheel zooms, dragging moves, a double click shows everything", async () => {
  await open("training");
  const at = await blockAt(0.5), all = (await state()).view;
  await page.mouse.move(at.x, at.y);
  await page.mouse.wheel({deltaY: -400});
  await frames(3);
  const near = (await state()).view;
  assert.ok(near.x1 - near.x0 < 0.9 * (all.x1 - all.x0));
  await page.mouse.down();
  await page.mouse.move(at.x - 100, at.y, {steps: 4});
  await page.mouse.up();
  await frames(3);
  const moved = (await state()).view;
  assert.ok(moved.x0 > near.x0 && Math.abs(moved.x1 - moved.x0 - (near.x1 - near.x0)) < 1);
  await page.mouse.click(at.x, at.y, {count: 2});
  await frames(3);
  assert.deepEqual((await state()).view, all);
});

test("the timeline is used with keys alone", async () => {
  await open("training");
  for (let k = 0; k < 30 && await page.evaluate(() => document.activeElement.id) !== "plot"; k++) await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.id), "plot");
  const start = await state();
  await press("ArrowRight", "ArrowRight", "ArrowLeft");
  assert.equal((await state()).moment, start.moment + 1);
  await press("ArrowUp");
  assert.ok((await state()).selected >= 0);
  await press("l");
  assert.notEqual((await state()).only, null);
  await press("Escape");
  assert.deepEqual([(await state()).selected, (await state()).only], [-1, null]);
  await press("+", "+");
  assert.ok((await state()).view.x1 - (await state()).view.x0 < 0.6 * EVENTS);
  await press("0", "End");
  assert.equal((await state()).moment, start.entries);
  await press("b", "p");
  assert.match(await words("#moment-text"), /Compared with event 100,000/);
  assert.match(await words("#holders-table thead"), /Change/);
  await press("?");
  assert.ok(await page.$eval("#help", (d) => d.open));
  await press("Escape");
  assert.ok(!await page.$eval("#help", (d) => d.open));
  await focus("#map-canvas");
  await press("ArrowRight", "ArrowRight");
  assert.match(await words("#map-text"), /at 0x/);
  assert.deepEqual(faults, []);
});

test("a group of the table is lit alone, and by any grouping", async () => {
  await open("training");
  await page.click("#holders-table tbody button.link");
  await frames(2);
  assert.notEqual((await state()).only, null);
  for (const by of await page.$$eval("#holders-by button", (list) => list.map((b) => b.dataset.by))) {
    await page.click(`#holders-by button[data-by="${by}"]`);
    await page.select("#colour", by);
    await frames(2);
    const total = await page.evaluate((by) => model.holders(app.m, app.moment, by).reduce((a, g) => a + g.bytes, 0), by);
    assert.equal(total, await page.evaluate(() => app.m.active[app.moment]));
  }
  await page.select("#across", "time");
  await frames(2);
  assert.deepEqual(faults, []);
});

test("a file without a history, and one with next to nothing, still make a page", async () => {
  const still = hostile();
  report("still", {...still, device_traces: [[]], external_annotations: []});
  await open("still");
  assert.match(await words("#shares"), /8.00 MiB in use/);
  await focus("#plot");
  await press("ArrowRight", "ArrowLeft", "End", "Home", "+", "-", "0", "p", "o", "n", "ArrowUp", "b");
  assert.deepEqual(faults, []);
  writeFileSync("one.trace", "a 0 512 0\n");
  execFileSync(process.env.TOOL, ["report", "-o", "one.html", "one.trace"]);
  await open("one");
  await press("ArrowRight", "n", "N", "w", "s");
  assert.match(await words("#holders-table"), /512 B/);
  assert.deepEqual(faults, []);
});

test("light and dark follow the system and the choice", async () => {
  const back = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await open("hostile");
  const light = await back();
  await open("hostile", {scheme: "dark"});
  const dark = await back();
  assert.notEqual(light, dark);
  await page.select("#theme", "light");
  assert.equal(await back(), light);
  await page.select("#theme", "");
  assert.equal(await back(), dark);
});

test("axe finds nothing that keeps people out, light or dark", async () => {
  const axe = readFileSync("node_modules/axe-core/axe.min.js", "utf8");
  for (const scheme of ["light", "dark"]) {
    await open("hostile", {scheme});
    await page.evaluate(axe);
    const found = await page.evaluate(async () => (await axe.run(document, {resultTypes: ["violations"]})).violations
      .map((v) => `${v.impact} ${v.id}: ${v.nodes.map((n) => n.target.join(" ")).slice(0, 4).join("; ")}`));
    assert.deepEqual(found, [], scheme);
  }
});

test("it fits laptop screens, and paper", async () => {
  for (const [width, height] of [[1366, 768], [1920, 1080], [800, 600]]) {
    await open("training", {width, height});
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${width}: wider than the window`);
    await page.screenshot({path: `training-${width}.png`});
  }
  const pdf = await page.pdf({path: "training.pdf", format: "A4", landscape: true});
  assert.ok(pdf.length > 20000);
  assert.deepEqual(faults, []);
});

test("frames at 100,000 events are short", async () => {
  for (const [width, height] of [[1366, 768], [1920, 1080]]) {
    await open("training", {width, height});
    const cdp = await page.createCDPSession();
    await cdp.send("Performance.enable", {timeDomain: "threadTicks"});
    const cpu = async () => (await cdp.send("Performance.getMetrics")).metrics.find((k) => k.name === "TaskDuration").value * 1000;
    const {ScriptDuration: script, LayoutDuration: layout} = await page.metrics();
    console.log(`  ${width}x${height} opened with ${(script * 1000).toFixed(0)} ms of script, ${(layout * 1000).toFixed(0)} ms of layout`);
    const moves = {
      "pan, everything": "t.all()|t.pan(t.length * 0.001 * (k % 20 < 10 ? 1 : -1), 0); t.zoom(k % 2 ? 0.9999 : 1.0001)",
      "pan, half": "t.all(); t.zoom(0.5, t.length / 2)|t.pan(t.length * 0.003 * (k % 20 < 10 ? 1 : -1), 0)",
      "pan, a twentieth": "t.all(); t.zoom(0.05, t.length / 2)|t.pan(t.length * 0.0005 * (k % 20 < 10 ? 1 : -1), 0)",
      "zoom": "t.all()|t.zoom(k % 20 < 10 ? 0.8 : 1.25, t.length / 2)",
      "hover": "t.all()|app.hover(k * 37 % app.m.lives, {clientX: 400, clientY: 300}, app.moment)",
    };
    for (const [name, move] of Object.entries(moves)) {
      const [setup, step] = move.split("|");
      await page.evaluate(`{ const t = app.timeline; ${setup} }`);
      await frames(3);
      const start = await cpu();
      const wall = await page.evaluate(`(async () => {
        const t = app.timeline, out = [];
        for (let k = 0; k < 60; k++) {
          ${step};
          const a = performance.now();
          t.draw();
          await Promise.resolve(); /* uPlot draws when the script is done */
          out.push(performance.now() - a);
          await new Promise((r) => requestAnimationFrame(r));
        }
        return out.sort((x, y) => x - y);
      })()`);
      /* Each step was drawn twice: by the loop, and on the next frame of the screen. */
      const each = (await cpu() - start) / 120;
      console.log(`  ${width}x${height} ${name.padEnd(17)} median ${wall[30].toFixed(1)} ms, 95 % ${wall[56].toFixed(1)} ms, processor ${each.toFixed(1)} ms a frame`);
      assert.ok(each < 50, name);
    }
  }
});

test("real snapshots open without a fault, and the page counts what granary explain counts", async () => {
  for (const file of (process.env.SNAPSHOTS || "").split(":").filter((f) => f)) {
    const name = basename(file).split(".")[0];
    execFileSync(process.env.TOOL, ["report", "-o", `${name}.html`, file]);
    for (const [width, height, scheme] of [[1366, 768, "light"], [1920, 1080, "dark"]]) {
      await open(name, {width, height, scheme});
      await page.screenshot({path: `${name}-${width}.png`});
      assert.deepEqual(faults, [], name);
    }
    await page.screenshot({path: `${name}-all.png`, fullPage: true});
    const told = JSON.parse(spawnSync(process.env.TOOL, ["explain", "--json", file], {maxBuffer: 2 ** 28}).stdout.toString().split("\n")[0]);
    const shown = await page.evaluate(() => ({moment: app.moment, reserved: app.shares.reserved, live: app.shares.live, pending: app.shares.pending}));
    assert.deepEqual(shown, {moment: told.entry, reserved: told.reserved_bytes, live: told.live_bytes, pending: told.pending_bytes}, name);
  }
});
