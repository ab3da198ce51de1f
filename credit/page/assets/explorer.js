"use strict";
/* Traces as swim lanes: one pane, or two traces of a group side by side. */
(() => {
  const { data, views, make, sentence, number, undusted, plural, table, facts, choice, section, chart, color, axis, tooltip, zoom, cut } = page;
  const { traces } = data.overview;
  const methods = Object.keys(data.overview.methods);
  const held = data.explorer.held.map((row) => traces[row]);
  const { labelled = false } = data.explorer; // a person gives outcomes: those of the log are not shown beside
  const known = new Map();
  const MOST_LISTED = 1000; // traces in a list to choose from; more are searched by their ids
  const MOST_KNOWN = 20; // traces that a page keeps which asks a server for them

  async function load(row) {
    if (!known.has(row) && data.explorer.served) {
      const answer = await fetch(`trace/${data.explorer.held[row]}`);
      if (!answer.ok) throw new Error(await answer.text());
      if (known.size >= MOST_KNOWN) known.delete(known.keys().next().value);
      known.set(row, await answer.json());
    } else if (!known.has(row)) {
      const bytes = Uint8Array.from(atob(views[row]), (c) => c.charCodeAt(0));
      const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
      known.set(row, JSON.parse(await new Response(stream).text()));
    }
    return known.get(row);
  }

  const named = (coded, i) => (coded.codes[i] < 0 ? null : coded.names[coded.codes[i]]);
  const SYMBOLS = { message: "circle", tool_call: "rect", tool_result: "rect", spawn: "triangle", despawn: "triangle", return: "diamond",
    aggregate: "diamond", orchestrator_decision: "circle", human_intervention: "pin", safety_event: "pin", stop: "roundRect" };
  const GLYPHS = [["●", "message, decision"], ["■", "tool call, result"], ["▲", "spawn, despawn"], ["◆", "return, aggregate"], ["⬢", "stop, person, safety"]];
  const ACROSS = new Set(["spawn", "message", "return", "aggregate"]);
  const WIDE = 18; // pixels of an event at first, so that marks do not cover each other
  const MOST_PART = 0.5; // of the events in such room, from which all are shown: their end is not a few marks away

  const state = { source: data.overview.summary.method ?? "none", x: "order", arrows: "across", noise: true };

  function value(view, i, source = state.source) {
    if (source === "none" || !view.receipt) return null;
    return source === "ledger" ? view.receipt.entry[i] : view.methods[source].advantage[i];
  }
  const NOISE = 1, UNKNOWN = 2;
  function doubt(view, i) {
    if (state.source === "none" || !view.receipt) return 0;
    if (state.source !== "ledger") return view.methods[state.source].doubt[i];
    return view.receipt.noise[i] ? NOISE : view.receipt.noise[i] == null && view.receipt.entry[i] !== 0 ? UNKNOWN : 0;
  }

  const mix = (from, to, part) => {
    const of = (hex) => [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16));
    const [a, b] = [of(from), of(to)];
    return `#${a.map((x, k) => Math.round(x + (b[k] - x) * part).toString(16).padStart(2, "0")).join("")}`;
  };
  const patterns = new Map();
  function fill(amount, most, doubted, size) {
    if (amount == null) return color("surface");
    const part = most > 0 ? Math.min(1, Math.abs(amount) / most) : 0;
    const shade = mix(color("shade"), color(amount < 0 ? "minus" : "plus"), Math.round((0.12 + 0.88 * part) * 12) / 12);
    const plain = amount === 0 ? color("shade") : shade;
    if (!doubted) return plain;
    const key = `${plain} ${color("surface")} ${size} ${doubted}`;
    if (!patterns.has(key)) {
      const tile = document.createElement("canvas");
      tile.width = tile.height = 6;
      const ink = tile.getContext("2d");
      ink.fillStyle = color("surface"); ink.fillRect(0, 0, 6, 6);
      ink.strokeStyle = amount === 0 ? color("none") : plain; ink.lineWidth = 2;
      ink.fillStyle = ink.strokeStyle;
      if (doubted === UNKNOWN) for (const at of [0, 3]) ink.fillRect(at, at, 2, 2);
      else for (const shift of [-6, 0, 6]) { ink.beginPath(); ink.moveTo(shift, 6); ink.lineTo(shift + 6, 0); ink.stroke(); }
      patterns.set(key, { image: tile, repeat: "repeat", scaleX: 2 / size, scaleY: 2 / size }); // a mark is a unit shape, scaled
    }
    return patterns.get(key);
  }

  class Pane {
    constructor(name) {
      this.name = name; this.row = null; this.view = null; this.selected = null; this.folded = new Set(); this.span = null; this.rank = {};
      this.about = make("p", { class: "about" });
      this.task = make("div", { class: "asked" });
      this.chart = chart(`${name}: events in lanes of agents`, () => this.view && this.option());
      this.receipt = make("div", { class: "receipt", "aria-live": "polite", tabindex: "0", role: "region", "aria-label": `Receipt of ${name}` });
      this.rows = make("div");
      const button = (text, act, label) => make("button", { type: "button", onclick: () => this.view && act(), "aria-label": label ?? text }, text);
      this.lanes = make("div", { class: "lanes", tabindex: "0", role: "group", "aria-label": `${name}, events in lanes; arrow keys walk along them` }, this.chart.box);
      this.lanes.addEventListener("keydown", (event) => this.key(event));
      this.picker = held.length > MOST_LISTED ? this.search() : choice(name, held.map((row, i) => [String(i), labelled ? cut(row.trace, 40) : `${cut(row.trace, 40)} (${row.reward == null ? "no outcome" : number(row.reward)})`]), (row) => this.show(+row))[1];
      this.element = make("div", { class: "pane" },
        make("div", { class: "controls" }, this.picker.parentElement,
          ...(methods.length ? [button("Most credited", () => this.jump(1)), button("Least credited", () => this.jump(-1))] : []),
          button("+", () => this.scale(0.5), "Zoom in"), button("−", () => this.scale(2), "Zoom out"), button("Fit", () => this.fit()),
          button("◂", () => this.pan(-0.5), "Pan left"), button("▸", () => this.pan(0.5), "Pan right"),
          button("Collapse", () => this.foldAll(true)), button("Expand", () => this.foldAll(false))),
        this.about, this.task, this.lanes, this.receipt,
        make("details", { open: labelled, ontoggle: (event) => { if (event.target.open && this.view) this.list(); } }, make("summary", {}, "Events as a table"), this.rows));
    }

    async show(row, event) {
      const asked = (this.asked = row);
      let view;
      try { view = await load(row); } catch (error) { this.about.textContent = `Trace ${cut(held[row].trace, 80)} cannot be shown: ${error.message}`; return; }
      if (this.asked !== asked) return; // another trace was chosen meanwhile
      if (this.row !== row) { this.folded.clear(); this.span = null; this.selected = null; this.rank = {}; }
      this.row = row; this.view = view; this.picker.value = held.length > MOST_LISTED ? held[row].trace : String(row);
      this.about.textContent = `${cut(view.id, 120)} · group ${cut(view.group, 80)}${labelled ? "" : ` · outcome ${number(view.reward)}`} · ${plural(view.event.length, "event")} · ${plural(view.lanes.length, "agent")}`;
      const task = labelled ? [] : [["Asked", view.task[0]], ["Result", view.task[1]]].filter(([, text]) => text); // beside the answers of a label
      this.task.replaceChildren(...task.map(([name, text]) => make("p", {}, make("b", {}, `${name}: `), text)));
      if (this.span == null) this.span = this.first();
      const at = event == null ? -1 : view.event.indexOf(event);
      this.rows.replaceChildren();
      if (this.rows.parentElement.open) this.list();
      if (at >= 0) this.select(at); else if (this.selected == null) this.rest();
      this.chart.draw();
      this.wire();
      if (this === main) page.shown?.(row);
    }

    search() {
      const field = make("input", { type: "search", placeholder: "a part of its id", onchange: () => {
        const text = field.value.trim().toLowerCase();
        const exact = held.findIndex((row) => row.trace.toLowerCase() === text);
        const row = exact >= 0 ? exact : held.findIndex((row) => row.trace.toLowerCase().includes(text));
        if (row >= 0) return this.show(row);
        const other = traces.find((row) => row.trace.toLowerCase().includes(text));
        this.about.replaceChildren(...(other ? ["The page does not hold it, because of its size. To see it, run ", page.command(other.trace)] : [`No trace has ${cut(field.value, 60)} in its id.`]));
      } });
      make("label", {}, `${this.name} (of ${number(held.length)})`, field);
      return field;
    }

    wire() {
      const drawn = this.chart.instance();
      if (!drawn || this.wired) return;
      this.wired = true;
      drawn.on("click", (at) => {
        if (at.componentType === "yAxis") this.fold(this.shownLanes()[+at.value]);
        else if (at.data && at.data.event != null) this.select(at.data.event);
      });
      drawn.on("datazoom", () => { const of = drawn.getOption().dataZoom[0]; this.span = [of.startValue, of.endValue]; });
    }

    /* Lanes and places */
    under(lane) { for (let up = this.view.lanes[lane].parent; up != null; up = this.view.lanes[up].parent) if (this.folded.has(up)) lane = up; return lane; }
    shownLanes() { return this.view.lanes.map((_, i) => i).filter((i) => this.under(i) === i); }
    parentOf(lane) { return this.view.lanes.some((other) => other.parent === lane); }
    fold(lane) {
      if (lane == null || !this.parentOf(lane)) return;
      if (!this.folded.delete(lane)) this.folded.add(lane);
      this.chart.draw();
    }
    foldAll(closed) { this.folded = new Set(closed ? this.view.lanes.keys() : []); this.chart.draw(); }
    timed() { return state.x === "time" && this.view.time.every((t) => t != null); }
    x(i) { return this.timed() ? this.view.time[i] - this.origin : i; }
    ends() {
      if (!this.timed()) return [-0.7, this.view.event.length - 0.3];
      this.origin = this.view.time.reduce((a, b) => Math.min(a, b), Infinity);
      const longest = this.view.time.reduce((a, b) => Math.max(a, b), -Infinity) - this.origin || 1;
      return [-0.02 * longest, 1.02 * longest];
    }
    first() {
      const [low, high] = this.ends();
      const room = Math.max(200, (this.lanes.clientWidth || 900) - 200);
      const part = room / (WIDE * this.view.event.length), length = (high - low) * (part < MOST_PART ? part : 1);
      return labelled ? [high - length, high] : [low, low + length]; // what a run came to is judged
    }

    /* Moves */
    limit([from, to]) {
      const [low, high] = this.ends();
      const length = Math.min(to - from, high - low);
      const start = Math.max(low, Math.min(from, high - length));
      this.span = [start, start + length];
      this.chart.draw();
    }
    scale(by) {
      const [from, to] = this.span;
      const at = this.selected == null ? (from + to) / 2 : Math.max(from, Math.min(to, this.x(this.selected)));
      this.limit([at - (at - from) * by, at + (to - at) * by]);
    }
    pan(by) { const [from, to] = this.span; this.limit([from + by * (to - from), to + by * (to - from)]); }
    fit() { this.limit(this.ends()); }
    select(i) {
      this.selected = i;
      const [from, to] = this.span, x = this.x(i);
      if (x < from || x > to) this.limit([x - (to - from) / 2, x + (to - from) / 2]); else this.chart.draw();
      this.print(i);
    }
    jump(sign) {
      const order = this.view.event.map((_, i) => i).filter((i) => value(this.view, i) != null && this.view.action[i])
        .sort((a, b) => sign * (value(this.view, b) - value(this.view, a)) || a - b);
      if (!order.length) return;
      const key = `${state.source} ${sign}`;
      const rank = this.selected === order[this.rank[key]] ? (this.rank[key] + 1) % order.length : 0;
      this.rank[key] = rank;
      this.select(order[rank]);
    }
    key(event) {
      if (event.ctrlKey || event.metaKey || event.altKey || !this.view) return;
      const last = this.view.event.length - 1, at = this.selected ?? -1;
      const walk = (step) => {
        const lanes = this.shownLanes(), here = lanes.indexOf(this.under(this.view.lane[Math.max(at, 0)]));
        const target = lanes[Math.max(0, Math.min(lanes.length - 1, here + step))];
        const inside = this.view.lane.map((_, i) => i).filter((i) => this.under(this.view.lane[i]) === target);
        if (inside.length) this.select(inside.reduce((a, b) => (Math.abs(b - at) < Math.abs(a - at) ? b : a)));
      };
      const acts = {
        ArrowRight: () => (event.shiftKey ? this.pan(0.25) : this.select(Math.min(last, at + 1))),
        ArrowLeft: () => (event.shiftKey ? this.pan(-0.25) : this.select(Math.max(0, at - 1))),
        ArrowDown: () => walk(1), ArrowUp: () => walk(-1), Home: () => this.select(0), End: () => this.select(last),
        "+": () => this.scale(0.5), "=": () => this.scale(0.5), "-": () => this.scale(2), 0: () => this.fit(),
        m: () => this.jump(1), l: () => this.jump(-1), c: () => this.selected != null && this.fold(this.under(this.view.lane[this.selected])),
      };
      if (acts[event.key]) { event.preventDefault(); acts[event.key](); }
    }

    /* The picture */
    option() {
      const view = this.view, lanes = this.shownLanes(), place = new Map(lanes.map((lane, i) => [lane, i]));
      const y = (i) => place.get(this.under(view.lane[i]));
      const [low, high] = this.ends();
      const most = Math.max(0, ...panes.filter((pane) => pane.view).map((pane) =>
        pane.view.event.reduce((size, _, i) => Math.max(size, Math.abs(value(pane.view, i) ?? 0)), 0)));
      ends.replaceChildren(...(most ? [`−${number(most)} `, make("span", { class: "scale" }), ` +${number(most)}`] : ["0 everywhere"]));
      const events = view.event.map((_, i) => {
        const kind = named(view.type, i), amount = value(view, i), doubted = state.noise ? doubt(view, i) : 0;
        return { value: [this.x(i), y(i)], event: i, symbol: SYMBOLS[kind] ?? "circle", symbolSize: view.action[i] ? 15 : 9,
          itemStyle: { color: fill(view.action[i] ? amount : null, most, doubted, 15), borderColor: view.error[i] ? color("bad") : amount == null || !view.action[i] ? color("none") : mix(color(amount < 0 ? "minus" : amount > 0 ? "plus" : "none"), color("text"), 0.15),
            borderWidth: view.error[i] ? 2.5 : 1 },
          label: { show: named(view.tool, i) != null && named(view.type, i) !== "tool_result" } };
      });
      const edges = (chosen, look, arrow) => ({ type: "lines", coordinateSystem: "cartesian2d", clip: true, silent: true, z: 1, symbol: ["none", arrow ? "arrow" : "none"], symbolSize: 7,
        lineStyle: { curveness: 0.12, width: 1.4, opacity: 0.75, ...look },
        data: view.senders.map((_, e) => e).filter((e) => chosen(named(view.edge, e), y(view.senders[e]) !== y(view.receivers[e])))
          .map((e) => ({ coords: [view.senders[e], view.receivers[e]].map((i) => [this.x(i), y(i)]) })) });
      const arrows = state.arrows === "none" ? [] : [
        edges((kind, apart) => kind === "spawn" && apart, { color: color("accent") }, true),
        edges((kind, apart) => kind === "message" && apart, { color: color("soft") }, true),
        edges((kind, apart) => (kind === "return" || kind === "aggregate") && apart, { color: color("good"), type: "dashed" }, true),
        ...(state.arrows === "all" ? [edges((kind, apart) => !ACROSS.has(kind) || !apart, { color: color("none"), width: 0.8, opacity: 0.6 }, false)] : []),
      ];
      const ring = this.selected == null ? [] : [{ value: [this.x(this.selected), y(this.selected)] }];
      const left = Math.min(190, this.chart.box.clientWidth * 0.36);
      return { height: 96 + 34 * Math.max(2, lanes.length), option: {
        grid: { left, right: 16, top: 22, bottom: 66 },
        xAxis: { type: "value", min: low, max: high, ...axis({ split: false, more: { name: this.timed() ? "seconds" : "event", nameGap: 22, minInterval: this.timed() ? undefined : 1 }, axisLabel: { showMinLabel: false, showMaxLabel: false, formatter: (v) => number(this.timed() ? +v.toFixed(2) : Math.round(v)) } }) },
        yAxis: { type: "category", inverse: true, data: lanes.map((_, i) => String(i)), triggerEvent: true,
          ...axis({ split: false, axisLabel: { interval: 0, align: "left", margin: left - 8, width: left - 14, overflow: "truncate", color: color("text"),
            formatter: (i) => { const lane = view.lanes[lanes[+i]]; return "  ".repeat(Math.min(lane.depth, 5)) + (this.parentOf(lanes[+i]) ? (this.folded.has(lanes[+i]) ? "▸ " : "▾ ") : "  ") + lane.label; } } }),
          splitLine: { show: true, lineStyle: { color: color("line"), opacity: 0.8 } } },
        dataZoom: [zoom({ xAxisIndex: 0, startValue: this.span[0], endValue: this.span[1], height: 16, bottom: 6, showDetail: false, minValueSpan: (high - low) / view.event.length }),
          { type: "inside", xAxisIndex: 0, filterMode: "none", zoomOnMouseWheel: "ctrl", moveOnMouseWheel: "shift", startValue: this.span[0], endValue: this.span[1] }],
        tooltip: tooltip((at) => (at.data && at.data.event != null ? this.hint(at.data.event) : "")),
        series: [...arrows,
          { type: "scatter", clip: true, z: 3, data: events, labelLayout: { hideOverlap: true },
            label: { position: "top", distance: 3, fontSize: 11, color: color("soft"), formatter: (at) => cut(named(view.tool, at.data.event) ?? "", 18) } },
          { type: "scatter", clip: true, silent: true, z: 4, symbol: "circle", symbolSize: 25, data: ring, itemStyle: { color: "transparent", borderColor: color("text"), borderWidth: 2 } }],
      } };
    }
    hint(i) {
      const view = this.view, amount = value(view, i);
      const head = [`${cut(view.event[i], 30)} · ${named(view.type, i)}`, named(view.tool, i), named(view.status, i)].filter(Boolean).map((part) => cut(part, 50)).join(" · ");
      const credit = amount == null ? "" : `\n${state.source}: ${number(amount, true)}${["", " (noise)", " (error not known)"][doubt(view, i)]}`;
      return `${head}\n${cut(view.lanes[view.lane[i]].label, 60)}${credit}` + (view.text?.[i] ? `\n${cut(view.text[i], 90)}` : "");
    }

    /* Receipts and rows */
    rest() { this.receipt.replaceChildren(make("p", { class: "note" }, "Choose an event for its receipt.")); }
    print(i) {
      const view = this.view, of = view.receipt;
      const head = make("h3", {}, `Event ${view.event[i]}: ${named(view.type, i)} by ${view.lanes[view.lane[i]].label}`);
      const about = facts([["place in its trace, from 0", String(i)], ["tool", named(view.tool, i)], ["status", named(view.status, i)], ["model", named(view.model, i)], ["early end", view.early?.[0] === i ? view.early[1] : null], ["turn", String(view.turn[i])],
        ["tokens", view.tokens[i] == null ? null : number(view.tokens[i])], ["log", `${view.file}${view.line[i] ? `, line ${view.line[i]}` : ""}`],
        ["chosen by a policy", view.action[i] ? "yes" : "no"]]);
      const parts = [head, view.text?.[i] ? make("blockquote", { tabindex: "0" }, view.text[i]) : null];
      if (!of) { this.receipt.replaceChildren(...parts.filter(Boolean), about); return; }
      const noise = of.noise[i];
      const lines = of.lines.map((line) => ({ ...line, i }));
      const size = Math.max(...[of.reward, of.expected, of.outcome, of.unexplained, of.entry[i], of.others[i]].map(Math.abs));
      const paid = (amount) => number(undusted(amount, size), true);
      const at = (key) => (line) => paid(line[key][i]);
      const account = of.reward == null ? [["return", "no outcome"]] : [["expected at the start", of.expected], [noise ? "this event (noise)" : "this event", of.entry[i]], ["its other events", of.others[i]],
        ["outcome, after the last action", of.outcome], ["unexplained", of.unexplained], ["remainder of exact arithmetic", of.remainder], ["return", number(of.reward)]];
      const call = named(of.call, i);
      this.receipt.replaceChildren(...parts.filter(Boolean),
        make("div", { class: "two" }, about, facts(account.map(([name, amount]) => [name, name === "return" ? amount : name.startsWith("remainder") ? number(amount, true) : paid(amount)]))),
        of.holding_luck ? make("p", { class: "note" }, sentence(of.holding_luck)) : "",
        make("p", {}, (call ? `Its credit is looked up at the action that it came from: ${call}. ` : "") +
          `Added up, the claims would pay ${paid(of.naive[i])}; the ledger pays ${paid(of.entry[i])}${of.stderr[i] == null ? "" : ` ± ${number(of.stderr[i])}`}` +
          `${noise ? ", which is noise: within two standard errors of 0" : ""}.`),
        table([["claim", (l) => l.claim, "w"], ["estimates", (l) => l.estimand, "w"], ["per", (l) => l.unit, "w"], ["advantage", (l) => number(view.methods[l.claim]?.advantage[i], true), "n"], ["wanted", at("wanted"), "n"], ["±", (l) => number(l.stderr[i]), "n"],
          ["as increment", at("increment"), "n"], ["weight", (l) => number(l.weight[i]), "n"], ["got", at("got"), "n"], ["why", (l) => named(l.why, i), "t"]], lines, `Claims of ${this.name}`),
        make("p", { class: "note" }, data.overview.legend));
    }
    list() {
      const view = this.view;
      this.rows.replaceChildren(table([["event", (i) => make("button", { type: "button", onclick: () => this.select(i), "aria-label": `Event ${view.event[i]}` }, view.event[i]), "i"], ["type", (i) => named(view.type, i), "w"], ["agent", (i) => view.lanes[view.lane[i]].label, "w"],
        ["tool", (i) => named(view.tool, i), "w"], ["status", (i) => named(view.status, i), "w"], ...(methods.length ? [["credit", (i) => number(value(view, i), true), "n"]] : []), ["text", (i) => cut(view.text?.[i] ?? "", labelled ? 2000 : 100), "t"]],
      view.event.map((_, i) => i), `Events of ${this.name}`, 60));
    }
  }

  const ends = make("span"); // the ends of the scale of colours
  const panes = [new Pane("Trace"), new Pane("Beside")];
  const [main, beside] = panes;
  beside.element.hidden = true;
  const sources = [...methods.map((name) => [name, name]), ...(methods.length ? [["ledger", "ledger entry"]] : []), ["none", "no colour"]];
  const again = () => panes.forEach((pane) => { if (!pane.view) return; pane.rank = {}; pane.chart.draw(); if (pane.rows.firstChild) pane.list(); });
  const compare = make("button", { type: "button", disabled: !held.length, "aria-pressed": "false", onclick: async () => {
    beside.element.hidden = !beside.element.hidden;
    compare.setAttribute("aria-pressed", String(!beside.element.hidden));
    if (beside.element.hidden) return;
    const group = held[main.row].group;
    const mates = held.map((row, i) => [row, i]).filter(([row, i]) => row.group === group && i !== main.row);
    const far = mates.sort(([a], [b]) => Math.abs((b.reward ?? 0) - (main.view.reward ?? 0)) - Math.abs((a.reward ?? 0) - (main.view.reward ?? 0)));
    await beside.show(far.length ? far[0][1] : main.row);
    again();
  } }, "Compare with a trace of its group");
  const part = section("explorer", "Traces",
    make("p", { class: "note" }, held.length < traces.length
      ? `The page holds ${number(held.length)} of ${number(traces.length)} traces, because of its size, taken in this order: those to look at first, others of their groups, the rest of the log. The tables hold all.`
      : "A lane is an agent instance, below the one that spawned it. Large marks are actions; small ones are their effects."),
    make("div", { class: "controls" },
      !methods.length ? null : choice("Colour by credit of", sources, (source) => { state.source = source; again(); }, state.source)[0],
      choice("Along", [["order", "order of events"], ["time", "time, where all events have one"]], (x) => { state.x = x; panes.forEach((pane) => { if (pane.view) { pane.span = pane.first(); } }); again(); }, state.x)[0],
      choice("Arrows", [["across", "between agents"], ["all", "all edges"], ["none", "none"]], (arrows) => { state.arrows = arrows; again(); }, state.arrows)[0],
      !methods.length ? null : choice("Noise", [["yes", "hatched"], ["no", "not marked"]], (noise) => { state.noise = noise === "yes"; again(); }, "yes")[0],
      compare),
    make("div", { class: "keys" },
      ...(methods.length ? [make("span", {}, "credit: ", ends), make("span", {}, make("span", { class: "hatch" }), " noise: within two standard errors of 0"),
        make("span", {}, make("span", { class: "dots" }), " error not known: none is stated, or the traces compared with all agree")] : []),
      ...GLYPHS.map(([glyph, text]) => make("span", {}, `${glyph} ${text}`)), make("span", {}, "red edge: error")),
    make("div", { class: "keys" }, ...[["← →", "events"], ["↑ ↓", "lanes"], ["+ −", "zoom"], ["0", "fit"], ["Shift ← →", "pan"], ...(methods.length ? [["m", "most"], ["l", "least"]] : []), ["c", "collapse"]]
      .map(([keys, text]) => make("span", {}, make("kbd", {}, keys), ` ${text}`)), make("span", {}, "Ctrl and wheel zooms, a drag pans.")),
    main.element, beside.element);

  Object.assign(page, { held, part, main });
  page.open = async (trace, event) => {
    const row = held.findIndex((one) => one.trace === trace);
    main.chart.box.dataset.seen = "1";
    await main.show(row, event);
    main.lanes.focus({ preventScroll: true });
    (labelled ? part : main.about).scrollIntoView(); // below the controls, which fill a phone
  };
  const watch = new MutationObserver(() => panes.forEach((pane) => pane.wire()));
  panes.forEach((pane) => watch.observe(pane.chart.box, { childList: true }));
  const telling = new Set(data.overview.groups.filter((row) => row.signal === "signal").map((row) => row.group));
  const credited = Object.values(data.overview.who).some((kinds) => Object.values(kinds).some((units) => units.length));
  // What went wrong and what it cost come first, what a trainer needs last.
  const who = credited ? ["who"] : [];
  page.lead(...["detail", "triage", "sides", "differences", ...who, "explorer", "costs", "days", "success"].filter((id) => document.querySelector(`main > #${id}`)));
  const [worst] = data.overview.triage.suspects.filter((one) => held.some((row) => row.trace === one.trace));
  const begin = worst ? held.findIndex((row) => row.trace === worst.trace) : held.findIndex((row) => telling.has(row.group));
  if (held.length && !data.explorer.labelled) main.show(Math.max(0, begin), worst?.event);
  document.querySelector("footer").textContent = `${methods.length ? `Methods: ${methods.join(", ")}. ` : ""}Charts by Apache ECharts ${echarts.version}. ${data.explorer.served ? "This page asks nothing but the command that serves it." : "This page loads nothing from a network."}`;
})();
