"use strict";
// Pointing at a chart, or moving along it with the arrow keys, tells the values of one step.  All else needs no script.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const words = data.words;
  const rows = data.rows || data.step.map((_, i) => i);
  const charts = [];

  const filled = (template, values) => template.replace(/\{(\w+)\}/g, (_, name) => values[name]);
  const grouped = (value, digits) =>
    value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  const shown = (value, unit) => {
    if (value === null || value === undefined) return "–";
    const size = Math.abs(value);
    return grouped(value, size >= 100 || value === 0 ? 0 : size >= 10 ? 1 : size >= 0.1 ? 2 : 4) + (unit ? " " + unit : "");
  };
  const named = (i) => filled(data.attempt ? words.again : words.step, {
    step: grouped(data.step[i], 0), attempt: data.attempt && data.attempt[i],
  });
  const nearest = (at) => {
    let low = 0, high = rows.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (rows[middle] + 0.5 < at) low = middle + 1; else high = middle;
    }
    return low > 0 && Math.abs(rows[low - 1] + 0.5 - at) <= Math.abs(rows[low] + 0.5 - at) ? low - 1 : low;
  };

  function element(name, parent) {
    const made = document.createElement("div");
    made.className = name;
    parent.append(made);
    return made;
  }

  // A chart: `points` places it can show, `at(i)` where that is, `find(x, y)` the place near a point, `tell(i)` its words.
  function follow(figure, chart) {
    const plot = figure.querySelector(".plot"), svg = plot.querySelector("svg"), output = figure.querySelector("output");
    const usual = output.textContent, top = +svg.dataset.top, height = +svg.dataset.height;
    const cursor = element("cursor", plot);
    cursor.style.top = top + "px";
    cursor.style.height = height + "px";
    cursor.tabIndex = 0;
    cursor.setAttribute("role", "slider");
    cursor.setAttribute("aria-label", figure.querySelector("h3").textContent + ", " + words.move);
    cursor.setAttribute("aria-valuemin", 0);
    cursor.setAttribute("aria-valuemax", chart.points - 1);
    cursor.setAttribute("aria-valuenow", 0);
    const line = element("hair", cursor), dot = element("dot", cursor);
    let now = null;

    chart.show = (i) => {
      now = i;
      const [x, y] = i === null ? [null, null] : chart.at(i);
      line.hidden = x === null || chart.dotted;
      dot.hidden = y === null || y === undefined;
      if (x !== null) line.style.left = dot.style.left = 100 * x + "%";
      if (!dot.hidden) dot.style.top = 100 * y + "%";
      const said = i === null ? usual : chart.tell(i);
      output.textContent = said;
      output.classList.toggle("live", i !== null);
      cursor.setAttribute("aria-valuenow", i === null ? 0 : i);
      cursor.setAttribute("aria-valuetext", said);
    };
    const go = (i) => (chart.shared ? share(i) : chart.show(i));
    const pointed = (event) => {
      const box = cursor.getBoundingClientRect();
      const x = (event.clientX - box.left) / box.width, y = (event.clientY - box.top) / box.height;
      if (x < -0.02 || x > 1.02 || y < -0.1 || y > 1.1) go(null);
      else go(chart.find(Math.min(1, Math.max(0, x)), Math.min(1, Math.max(0, y))));
    };
    plot.addEventListener("pointermove", pointed);
    plot.addEventListener("pointerdown", pointed);
    plot.addEventListener("pointerleave", () => go(null));
    cursor.addEventListener("focus", () => { if (now === null) go(chart.points - 1); });
    cursor.addEventListener("blur", () => go(null));
    cursor.addEventListener("keydown", (event) => {
      const row = chart.row || chart.points, last = chart.points - 1, here = now === null ? last : now;
      const moves = {
        ArrowLeft: here - 1, ArrowRight: here + 1, Home: here - (here % row), End: here - (here % row) + row - 1,
        PageUp: here - 10, PageDown: here + 10, ArrowUp: here - (chart.row || -1), ArrowDown: here + (chart.row || -1),
      };
      if (event.key === "Escape") go(null);
      else if (event.key in moves) go(Math.min(last, Math.max(0, moves[event.key])));
      else return;
      event.preventDefault();
    });
    chart.show(null);
    charts.push(chart);
  }
  const share = (i) => charts.forEach((chart) => { if (chart.shared) chart.show(i); });
  const along = (i) => (rows[i] + 0.5) / data.count;
  const find = (x) => nearest(x * data.count);

  const kinds = {
    stack(figure) {
      const parts = [...figure.querySelectorAll("[data-of]")].map((item) => [item, item.textContent]);
      return {
        shared: true, points: rows.length, find, at: (i) => [along(i), null],
        tell(i) {
          const step = data.series.step;
          parts.forEach(([item]) => {
            const held = data.series[item.dataset.of];
            item.textContent = held ? shown(held.values[i], held.unit) : "–";
          });
          return named(i) + ": " + (step ? shown(step.values[i], step.unit) : "–");
        },
        reset: () => parts.forEach(([item, text]) => { item.textContent = text; }),
      };
    },
    series(figure) {
      const held = data.series[figure.dataset.of];
      return held && {
        shared: true, points: rows.length, find, at: (i) => [along(i), null],
        tell(i) {
          const value = held.values[i], expected = held.expected && held.expected[i];
          const said = named(i) + ": " + (value === null ? words.unknown : shown(value, held.unit));
          return expected ? said + ", " + filled(words.expected, { value: shown(expected, held.unit) }) : said;
        },
      };
    },
    scatter(figure) {
      const held = data.series[figure.dataset.of], tokens = data.series.tokens;
      const [low, high] = figure.dataset.along.split(" ").map(Number);
      const [least, most] = figure.dataset.up.split(" ").map(Number);
      const places = [];
      held.values.forEach((value, i) => {
        const work = tokens.values[i];
        if (value === null || work === null) return;
        places.push([i, (work - low) / (high - low), Math.max(0, 1 - (value - least) / (most - least))]);
      });
      return places.length > 0 && {
        dotted: true, points: places.length, at: (k) => places[k].slice(1),
        find(x, y) {
          let best = 0, found = Infinity;
          places.forEach(([, a, b], k) => {
            const away = 4 * (a - x) ** 2 + (b - y) ** 2;
            if (away < found) [best, found] = [k, away];
          });
          return best;
        },
        tell(k) {
          const i = places[k][0];
          const work = filled(words.tokens, { tokens: grouped(tokens.values[i], 0) });
          return named(i) + ": " + shown(held.values[i], held.unit) + ", " + work;
        },
      };
    },
    memory(figure) {
      const strip = data.memory[+figure.dataset.of], columns = strip.steps.length, cards = strip.cards.length;
      return {
        row: columns, points: columns * cards,
        at: (i) => [((i % columns) + 0.5) / columns, (Math.floor(i / columns) + 0.5) / cards],
        find: (x, y) => Math.min(cards - 1, Math.floor(y * cards)) * columns + Math.min(columns - 1, Math.floor(x * columns)),
        tell(i) {
          const card = Math.floor(i / columns), [first, last] = strip.steps[i % columns], gb = strip.gb[card][i % columns];
          const step = grouped(first, 0) + (last > first ? "–" + grouped(last, 0) : "");
          return strip.cards[card] + ", " + filled(words.step, { step }) + ": " + (gb === null ? words.unknown : shown(gb, "GB"));
        },
      };
    },
  };

  document.querySelectorAll("figure[data-kind]").forEach((figure) => {
    const chart = kinds[figure.dataset.kind](figure);
    if (!chart) return;
    follow(figure, chart);
    if (chart.reset) {
      const show = chart.show;
      chart.show = (i) => { show(i); if (i === null) chart.reset(); };
    }
  });
})();
