"use strict";
/* The sections above the explorer. */
(() => {
  const { data, make, prose, ended, sentence, number, percent, apart, undusted, plural, table, explained, facts, choice, section, untold, unanswered, chart, color, axis, tooltip, zoom, margin, cut } = page;
  const { overview } = data;
  const { corpus, groups, traces, who, ledger, comparison, triage } = overview;
  const methods = Object.keys(overview.methods);
  const kept = new Set(data.explorer.held.map((row) => traces[row].trace));
  const quoted = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'"'"'`)}'`); // as a shell takes it
  const command = (trace, event) => make("code", { class: "path whole" }, `${data.explorer.show} --trace ${quoted(trace)}${event == null ? "" : ` --around ${quoted(event)}`}`);
  /* What leads to an event: a button, or the words of a sentence or a cell where the page does not hold the trace. */
  const opener = (trace, event, text) => (kept.has(trace) ? make("button", { type: "button", onclick: () => page.open(trace, event) }, text ?? event ?? trace)
    : text == null ? event ?? trace : make("span", {}, "To see it, run ", command(trace, event)));
  const ids = traces.map((row) => row.trace);
  const of_trace = ["trace", (row) => row.trace, "i", ids];
  const unheld = (rows) => (rows.every((row) => kept.has(row.trace)) ? null
    : make("p", { class: "note" }, "The page holds no events of traces without a button, because of its size. A terminal shows one: ", make("code", { class: "path" }, `${data.explorer.show} --trace TRACE --around EVENT`)));
  Object.assign(page, { command });

  const scored = traces.filter((row) => row.reward != null);
  const mean = scored.length ? scored.reduce((sum, row) => sum + row.reward, 0) / scored.length : null;
  const signals = groups.filter((row) => row.signal === "signal").length;
  const of_log = data.explorer.labelled ? " in the log" : ""; // beside those that a person gives
  const compared = corpus.evidence.event_reward ? "returns" : "outcomes";
  const total = (key) => triage.agents.reduce((sum, row) => (row[key] == null ? sum : (sum ?? 0) + row[key]), null);
  const lost = traces.some((row) => row.lacks_lines), lacks = (row) => row.lacks_lines && !overview.few_lacking;
  const written = (value, digits) => number(value, false, digits), signs = (value, digits) => number(value, true, digits);
  const ends = (row) => apart([row.low, row.high], signs, 3, 0).join(" to "); // as `graphs.text.interval`
  const mark = (partly, text) => (!partly || text === "–" ? text : text === "0" ? "0 seen" : `≥ ${text}`);
  const heads = { calls: "tool calls", tokens: "tokens generated", input_tokens: "tokens read", seconds: "seconds of work", logged_money: "logged cost" };
  const head = (key) => heads[key] ?? key.replaceAll("_", " ");
  const least = (...keys) => keys.map((key) => [head(key),
    (r) => mark(lacks(r) || (key === "tokens" && r.actions_with_tokens < r.actions), number(key === "tokens" && !r.actions_with_tokens ? r[key] || null : r[key])), "n"]);
  const { questions: asked } = overview;
  const { priced, stated } = asked;
  const { logged_money: of_calls } = asked.total;
  const paid = of_calls.total > (stated.money?.total ?? 0) * (1 + 1e-6) ? of_calls : stated.money?.total == null ? null : stated.money; // the larger of two bounds
  const { tokens, input_tokens: read } = asked.total;
  const some = tokens.total != null || read.total != null;
  const named = asked.models.rows.some((row) => !row.outside && row.unit !== "unknown");
  const brief = (amount, roundingMode) => new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 1, roundingMode }).format(amount);
  const bound = (amount, partly, digits = 4) => mark(partly, amount == null ? "–" : amount < 1e6 ? written(amount, digits) : brief(amount, partly ? "floor" : "halfExpand")).replace(" ", "\u00a0");
  const sum = (of) => bound(of.total, of.missing || (lost && of !== stated.money));
  const timed = traces.filter((row) => row.wall_clock != null);
  const clock = { total: timed.length ? timed.reduce((all, row) => all + row.wall_clock, 0) : null, missing: traces.length - timed.length };
  const time = (seconds, partly) => {
    const round = partly ? Math.floor : Math.round; // a lower bound is no larger than what it is of
    const whole = round(seconds), minutes = round(whole / 60);
    return whole < 60 ? `${number(seconds)} s` : whole < 3600 ? `${Math.floor(whole / 60)} min ${whole % 60} s`
      : `${number(Math.floor(minutes / 60))} h ${minutes % 60} min`;
  };
  const ran = mark(clock.missing || lost, time(clock.total, clock.missing || lost));
  const partly = lost || traces.some((row) => row.errors == null);
  const tile = (value, text) => make("div", { class: "tile" }, make("b", {}, value.replaceAll(" ", "\u00a0")), make("span", {}, prose(text)));
  document.getElementById("tiles").append(...[
    tile(number(corpus.traces), "traces"),
    ...(!scored.length ? [] : [
      overview.differences.cut == null ? null : tile(`${number(overview.differences.failed)} / ${number(scored.length)}`, `failed${of_log}: outcome below ${number(overview.differences.cut)}`),
      overview.differences.cut != null && scored.every((row) => row.reward === 0 || row.reward === 1) ? null
        : tile(number(mean), `mean outcome${of_log} over ${plural(scored.length, "trace")}`)]),
    total("errors") == null ? null : tile(bound(total("errors"), total("errors") && partly), partly && !total("errors") ? "errors in the part that was logged" : "errors"),
    !priced && !paid ? null : tile(priced ? sum(asked.total.money) : sum(paid), priced ? "money at the given prices" : "logged cost"),
    tokens.total == null ? null : tile(sum(tokens), `tokens generated${read.total == null ? "" : `, ${sum(read)} read`}`),
    tokens.total == null && read.total != null ? tile(sum(read), "tokens read") : null,
    clock.total == null ? null : tile(ran, "wall clock of traces"),
    tile(number(corpus.problem_count), `${corpus.problem_count === 1 ? "problem" : "problems"} of reading${corpus.note_count ? `, ${plural(corpus.note_count, "note")}` : ""}`),
  ].filter(Boolean));

  /* For somebody who reads nothing else: the lines that `credit summary` begins with. */
  const { differences, sides, findings } = overview;
  const by_side = (one) => (sides ? `${sentence(sides.heads.map((head, i) => `in ${head} ${number(one.of_sides[i])} of ${plural(triage.sides[i], "trace")}`).join(", "))} ` : "");
  const said = (name, ...text) => make("p", {}, make("b", {}, `${name} `), ...text);
  const listed = (name, lines) => (lines.length < 2 ? lines.map((line) => said(name, ...[line].flat())) : [make("div", {}, make("b", {}, name), make("ul", {}, ...lines.map((line) => make("li", {}, ...[line].flat()))))]);
  document.getElementById("lead").append(...findings.flatMap((one) => listed(`${one.name}${one.name.startsWith("What failed") ? of_log : ""}:`,
    one.lines.map((line, i) => [...prose(line), ...(one.trace && i === one.lines.length - 1 ? [" ", opener(one.trace, one.event || undefined, "Show it")] : [])]))));

  /* What stands behind them. */
  const whole = priced ? asked.total.money.total : paid && Math.abs(paid.total - asked.total.logged_money.total) <= 1e-6 * paid.total ? paid.total : null;
  const [dearest, other] = asked.costs.rows.filter((row) => !row.outside);
  const most = whole && other ? dearest[priced ? "money" : "logged_money"] : null;
  const mostly = most?.total ? ` (${sum(most)} by ${cut(dearest.unit, 40)})` : "";
  const spent = [paid || priced ? priced ? `money ${sum(asked.total.money)}${mostly} at the given prices${asked.unpriced && `, which lack ${asked.unpriced}`}` : `logged cost ${sum(paid)}${mostly}` : null,
    some ? [tokens.total == null ? null : `${sum(tokens)} tokens generated`, read.total == null ? null : `${sum(read)}${tokens.total == null ? " tokens" : ""} read`].filter(Boolean).join(" and ") : null,
    clock.total == null ? null : `${ran} of wall clock`].filter(Boolean).map((text) => text.replace(/≥\s/g, "at least "));
  const { causes } = triage, [, differing] = differences.opening;
  const price = sides?.paid || asked.paid, [what] = price.split(": "); // of each side, where there are two
  const others = causes.filter((cause) => !findings.some((one) => one.trace === cause.trace && one.event === cause.event));
  const further = others.map((one) => [...prose(sentence(one.told)), " ", by_side(one), opener(one.trace, one.event, "Show it")]);
  section("detail", "In more detail", ...[
    ...findings.flatMap((one) => listed(`${one.name}:`, one.more.map((line) => prose(line)))),
    ...listed(others.some((one) => one.beyond_chance === false) ? "What may have gone wrong:" : "What else went wrong:", further),
    ...listed("Where the changes come from:", sides ? sides.origins.map((one) => prose(sentence(one))) : []),
    ...listed("But:", sides ? sides.caveats : []),
    price ? said(`${price[0].toUpperCase()}${what.slice(1)}:`, ended(price.slice(what.length + 2))) : null,
    said("What it cost:", spent.length ? `${spent.join(", ")}.` : "the logs do not say.", triage.slowest && !findings.some((one) => one.told.includes(triage.slowest)) ? ` ${triage.slowest}.` : ""),
    overview.verdicts_by_system ? said("By system:", ended(overview.verdicts_by_system)) : null,
    differing ? said(`${differences.name}:`, ...prose(differing)) : null,
  ].filter(Boolean));

  for (const [what, known] of [["Errors", total("errors") != null], ["Tokens generated", tokens.total != null], ["Tokens read", read.total != null], ["Wall clock", clock.total != null]]) if (!known) unanswered(what, "not logged");
  /* Of sentences those that do not stand above already. */
  const above = ["lead", "detail"].map((id) => document.getElementById(id).textContent).join(" ").replaceAll("\u00a0", " ").toLowerCase();
  const unsaid = (texts) => texts.filter((text) => !above.includes(text.replaceAll("`", "").replace(/\.$/, "").toLowerCase()));

  const counts = (of) => Object.entries(of).map(([name, count]) => `${name} (${number(count)})`).join(", ") || "none";
  const spread = (of) => of == null ? "not logged"
    : of.least === of.greatest ? number(of.least) : `${number(of.least)} to ${number(of.greatest)}, median ${number(of.median)}`;
  section("read", "What was read",
    facts([
      ["Events", `${plural(corpus.events, "event")}, ${plural(corpus.actions, "action")} of ${plural(corpus.agents, "agent instance")}`],
      ["Formats", counts(corpus.formats)],
      ["Sizes of groups", Object.entries(corpus.group_sizes).map(([size, count]) => `${plural(count, "group")} of ${plural(+size, "trace")}`).join(", ")],
      [`Outcomes${of_log}`, `${number(corpus.with_outcome)} of ${number(corpus.traces)} traces`],
      ["Rewards in the log", counts(corpus.reward_channels)],
      ["Actions of a trace", spread(corpus.actions_per_trace)],
      ["Agents of a trace", spread(corpus.agents_per_trace)],
      ["Events of an agent", spread(corpus.events_per_agent)],
      ["Tokens generated", corpus.tokens_per_trace == null ? "not logged"
        : `${number(corpus.tokens_per_trace.total)} in ${number(corpus.actions_with_tokens)} of ${number(corpus.actions)} actions; a trace has ${spread(corpus.tokens_per_trace)}`],
      ["Evidence", counts(corpus.evidence)],
      ["Files passed over", corpus.ignored.length ? number(corpus.ignored.length) : null],
      ["Not read, or not as expected", corpus.problem_texts.length ? counts(corpus.problem_kinds) : "nothing"],
    ]),
    corpus.problem_texts.length
      ? make("details", {}, make("summary", {}, `Problems and notes (${number(corpus.problem_count + corpus.note_count)})`), table([["problem or note", (text) => text]], corpus.problem_texts, "Problems"))
      : null);

  const words = { signal: "signal", equal: `equal ${compared}`, unresolved: "no difference that methods see", single: "one trace", unscored: `fewer than two outcomes${of_log}` };
  const ink = { signal: "plus", equal: "none", unresolved: "none", single: "none", unscored: "none" };
  const ranged = groups.filter((row) => row.mean != null);
  const vertical = (rows, label, most = 170) => ({ type: "category", inverse: true, data: rows.map((_, i) => i),
    ...axis({ split: false, axisLabel: { formatter: (i) => cut(label(rows[+i]), 60), interval: 0, width: margin(most) - 14, overflow: "truncate" } }) });
  const tall = (rows, most = 24) => Math.max(110, 60 + 24 * Math.min(rows, most));
  const window_ = (rows, most = 24) => (rows > most
    ? [zoom({ yAxisIndex: 0, startValue: 0, endValue: most - 1, width: 14, right: 4, showDetail: false }),
      { type: "inside", yAxisIndex: 0, filterMode: "none", zoomOnMouseWheel: false, moveOnMouseWheel: "shift" }] : []);
  if (scored.length) section("groups", "Groups and their signal",
    make("p", {}, signals ? `${number(signals)} of ${plural(corpus.groups, "group")} ${signals > 1 ? "carry a training signal: their" : "carries a training signal: its"} traces have different ${compared}.`
      : `No group has traces with different ${compared}, so none carries a training signal.`),
    make("p", { class: "note" }, "A group-relative method learns only where the traces of a group have different returns. The line spans the least and greatest return, the dot is the mean."),
    ranged.length ? chart("Range and mean of the returns of each group", () => ({
      height: tall(ranged.length),
      option: {
        grid: { left: margin(170), right: 40, top: 10, bottom: 44 },
        xAxis: { type: "value", scale: true, ...axis({ more: { name: "return" } }) }, yAxis: vertical(ranged, (row) => row.group),
        dataZoom: window_(ranged.length),
        tooltip: tooltip((at) => { const row = ranged[at.data.value ? at.data.value[1] : at.data.coords[0][1]];
          return `${cut(row.group, 60)}\n${words[row.signal]}\nmean ${number(row.mean)}, ${number(row.least)} to ${number(row.greatest)}\n${row.with_outcome} of ${row.traces} traces with an outcome`; }),
        series: [
          { type: "lines", coordinateSystem: "cartesian2d", clip: true, lineStyle: { width: 4, opacity: 0.55, curveness: 0 }, symbol: "none",
            data: ranged.map((row, i) => ({ coords: [[row.least, i], [row.greatest, i]], lineStyle: { color: color(ink[row.signal]) } })) },
          { type: "scatter", symbolSize: 0, silent: true, data: ranged.flatMap((row, i) => [[row.least, i], [row.greatest, i]]) }, // lines do not widen an axis
          { type: "scatter", symbolSize: 10, clip: true, data: ranged.map((row, i) => ({ value: [row.mean, i], itemStyle: { color: color(ink[row.signal]) } })) },
        ],
      },
    })).box : null,
    make("details", {}, make("summary", {}, "All groups as a table"),
      table([["group", (r) => r.group, "i"], ["traces", (r) => number(r.traces), "n"], [`with an outcome${of_log}`, (r) => number(r.with_outcome), "n"],
        ["mean return", (r) => number(r.mean), "n"], ["least", (r) => number(r.least), "n"], ["greatest", (r) => number(r.greatest), "n"],
        ["signal", (r) => words[r.signal]]], groups, "Groups")));

  const measures = [["events", "events"], ["actions", "actions"], ["agents", "agents"], ["tokens", "tokens generated"], ["errors", "errors"]];
  let across = "events";
  const success = scored.length ? chart("Reward of each trace by its length or cost", () => {
    const rows = scored.filter((row) => row[across] != null);
    return { height: 320, option: {
      grid: { left: 64, right: 20, top: 14, bottom: 46 },
      xAxis: { type: "value", scale: true, ...axis({ more: { name: measures.find(([m]) => m === across)[1] } }) },
      yAxis: { type: "value", scale: true, ...axis({ more: { name: `outcome${of_log}`, nameGap: 44 } }) },
      tooltip: tooltip((at) => { const row = rows[at.dataIndex];
        return `${cut(row.trace, 60)}\noutcome${of_log} ${number(row.reward)}\n${plural(row.events, "event")}, ${plural(row.actions, "action")}, ${plural(row.agents, "agent")}` +
          (row.tokens == null ? "" : `\n${number(row.tokens)} tokens`) + (row.errors ? `\n${row.errors} errors` : ""); }),
      series: [{ type: "scatter", symbolSize: 10, data: rows.map((row) => [row[across], row.reward]),
        itemStyle: { color: color("accent"), opacity: 0.6 } }],
    } };
  }) : null;
  section("success", scored.length ? "Success, cost and length" : "Cost and length",
    success ? make("div", { class: "controls" }, choice("Across", measures.filter(([m]) => scored.some((row) => row[m] != null)), (value) => { across = value; success.draw(); }, across)[0]) : null,
    success?.box,
    make("details", { open: !success }, make("summary", {}, "All traces as a table"),
      table([["trace", (r) => opener(r.trace), "i", ids], ...(traces.some((r) => r.group !== r.trace) ? [["group", (r) => r.group, "i"]] : []), ...(scored.length ? [[`outcome${of_log}`, (r) => number(r.reward), "n"]] : []),
        ...least("events", "actions", "agents", "tokens", "errors")],
      traces, "All traces"), unheld(traces)));

  const { days } = overview;
  if (days.periods.length > 1) {
    const [bad, good] = days.kinds, parts = [[bad, (r) => r.failed, "minus"], [good, (r) => r.known - r.failed, "plus"], ["without an outcome", (r) => r.traces - r.known, "none"]];
    const rate = (r) => (r.known ? `${number(r.failed)} of ${number(r.known)}` : "–");
    const picture = chart(`Runs by ${days.unit}`, () => ({ height: tall(days.periods.length), option: {
      grid: { left: margin(130), right: 40, top: 10, bottom: 44 }, dataZoom: window_(days.periods.length),
      xAxis: { type: "value", ...axis({ more: { name: `runs: from the left ${parts.map(([name]) => name).join(", ")}` } }) }, yAxis: vertical(days.periods, (r) => r.begin, 130),
      tooltip: tooltip((at) => { const r = days.periods[at.dataIndex]; return `${r.begin}\n${plural(r.traces, "run")}, ${bad} ${rate(r)}`; }),
      series: parts.map(([name, of, tint]) => ({ name, type: "bar", stack: "runs", barMaxWidth: 16, data: days.periods.map(of), itemStyle: { color: color(tint) } })),
    } }));
    section("days", `Runs by ${days.unit}`, picture.box,
      make("details", {}, make("summary", {}, "As a table"), table([[`${days.unit} (UTC)`, (r) => r.begin], ["runs", (r) => number(r.traces), "n"], [bad, rate, "n"],
        ...(days.paid_in ? [[days.paid_in, (r) => `${r.whole || r.cost == null ? "" : "≥ "}${number(r.cost)}`, "n"]] : [])], days.periods, `Runs by ${days.unit}`)));
  }

  if (differences.comparison.length) {
    const [bad, good] = differences.kinds, Bad = bad[0].toUpperCase() + bad.slice(1);
    const shares = (row) => apart([row.chance, row.low, row.high], percent, 0, row.stands_out ? 0.5 : null), means = (row) => apart([row.failed, row.succeeded], ...(row.what.startsWith("traces ") ? [percent, 0] : [written, 4]));
    const range = (row) => (row.low == null ? "–" : shares(row).slice(1).join(" to ")) + (row.stands_out ? " *" : "");
    const told = differences.rows.filter((row) => !row.folded); // a line below names the others, which say the same
    const drawn = told.filter((row) => row.chance != null);
    const wide = drawn.map((row, i) => [row, i]).filter(([row]) => row.low != null);
    const tint = (row) => color(row.stands_out ? (row.chance > 0.5 ? "minus" : "plus") : "none");
    const picture = drawn.length ? chart(`Chance that a ${bad} trace has more than a ${good} one, with its 95 % interval`, () => ({
      height: tall(drawn.length), option: {
        grid: { left: margin(210), right: 40, top: 10, bottom: 44 },
        xAxis: { type: "value", ...axis({ more: { name: `${bad} has more, %` } }) }, yAxis: vertical(drawn, (row) => row.what, 210),
        dataZoom: window_(drawn.length),
        tooltip: tooltip((at) => { const row = drawn[at.data.value ? at.data.value[1] : at.data.coords[0][1]];
          return `${cut(row.what, 60)}\n${bad} ${means(row)[0]}, ${good} ${means(row)[1]}\n${shares(row)[0]}, 95 % ${range(row)}`; }),
        series: [
          { type: "lines", coordinateSystem: "cartesian2d", clip: true, symbol: "none", lineStyle: { width: 3, opacity: 0.55, curveness: 0 },
            data: wide.map(([row, i]) => ({ coords: [[100 * row.low, i], [100 * row.high, i]], lineStyle: { color: tint(row) } })) },
          { type: "scatter", symbolSize: 0, silent: true, data: wide.flatMap(([row, i]) => [[100 * row.low, i], [100 * row.high, i]]) }, // lines do not widen an axis
          { type: "scatter", symbolSize: 11, clip: true, data: drawn.map((row, i) => ({ value: [100 * row.chance, i], itemStyle: { color: tint(row) } })),
            markLine: { silent: true, symbol: "none", data: [{ xAxis: 50 }], label: { show: false }, lineStyle: { color: color("soft"), type: "solid", width: 1 } } },
        ],
      } })) : null;
    const { units } = differences;
    const columns = [[`mean over ${units}`, (r) => r.what], [bad, (r) => means(r)[0], "n"], [good, (r) => means(r)[1], "n"],
      [`${bad} has more`, (r) => shares(r)[0], "n"], [differences.within ? `${units} that differ` : "tasks", (r) => number(r.tasks), "n"], ["95 % interval", range, "n"]];
    section("differences", `${Bad} against ${good}`,
      ...unsaid(differences.comparison).map((line) => make("p", {}, prose(line))),
      picture?.box,
      ...(!told.length ? [] : [table(columns, told, "Differences", 15), ...differences.same.map((line) => make("p", { class: "note" }, line)),
        explained(columns, told, ...differences.terms)]));
  }

  if (sides) {
    const bounded = new Set(sides.differences.map((row) => row.metric));
    const ratio = (row, value, low, high) => `${row.paired ? "typical" : "geometric"} ×${value} (${low} to ${high})`;
    const interval = (row) => (row.ratio ? ratio(row, ...apart([row.ratio.value, row.ratio.low, row.ratio.high], written, 3, 1)) : row.low != null ? ends(row) : row.without ?? "not compared");
    const bounds = sides.bounds.map((row) => ({ metric: bounded.has(row.metric) ? `${row.metric}, all traces` : row.metric, tasks: row.tasks,
      ...Object.fromEntries(["first", "second"].map((side, i) => [side, bound(row[side], !row.whole[i], 3)])) }));
    const rows = sides.differences.flatMap((row) => [row, ...sides.kinds.filter((of) => of.is_shown && of.metric === row.metric)]).filter((row) => !(row.is_other && row.is_alike) && !row.is_repeated).concat(sides.of_tools, bounds), others = rows.filter((row) => row.is_other);
    const columns = [["metric", (r) => (r.kind ? r.name : r.metric.replaceAll("_", " "))], ...["first", "second"].map((side, i) => [sides.heads[i], (r) => (typeof r[side] !== "number" ? r[side] : r.is_alike ? written(r.first, 3) : apart([r.first, r.second], written, 3)[i]), "n"]),
      ["change", (r) => (r.difference == null ? "" : r.is_alike ? "the same" : signs(r.difference, 3)), "n"], ["95 % interval", (r) => `${interval(r)}${r.mark ? ` ${r.mark}` : ""}`, "n"],
      ["would be seen", (r) => (r.would_be_seen === "" ? "nothing" : r.would_be_seen ?? ""), "n"], ["tasks", (r) => `${r.is_of_some ? `${number(r.differing)} of ` : ""}${number(r.tasks)}${r.paired ? " shared" : ""}`, "n"]];
    const told = sides.lines.findIndex((line) => line.startsWith("What changed")), note = (line) => make("p", { class: "note" }, prose(sentence(line))); // that is in the lead
    section("sides", `Sides: ${sides.heads.join(" against ")}`,
      table(columns, rows.filter((row) => !row.is_other), "Sides", 15),
      others.length ? make("details", {}, make("summary", {}, `Other metrics (${number(others.length)})`), table(columns, others, "Other metrics")) : null,
      ...unsaid(sides.lines.slice(0, told)).map(note),
      make("details", {}, make("summary", {}, "In sentences"), ...unsaid(sides.lines.slice(told)).map(note)),
      sides.uncompared.length ? make("details", {}, make("summary", {}, `Metrics without a number (${number(sides.uncompared.length)})`),
        table([["metric", (r) => r.metric.replaceAll("_", " ")], ["side", (r) => r.sides.join(", ")], ["reason", (r) => r.reason]], sides.uncompared, "Metrics without a number")) : null,
      explained(columns, rows, ...sides.terms));
  }

  if (methods.length) {
    const { summary } = overview;
    const kinds = ["agent", "role", "tool", "turn", "type"].filter((kind) => methods.some((name) => who[name][kind].length > 1));
    let method = summary.method, by = kinds[0] ?? "agent"; // a unit alone has nothing to be compared with
    const units = () => who[method][by];
    const nothing = methods.every((name) => Object.entries(who[name]).every(([kind, rows]) => !rows.length || overview.alike[name][kind]));
    const noted = make("div");
    const none = `fewer than ${summary.least_tasks} tasks differ, or all alike`;
    const holder = make("div");
    const tint = (row) => color(row.stands_out ? (row.difference > 0 ? "plus" : "minus") : "none");
    const picture = chart("Advantage against the rest of the trace, with its 95 % interval", () => {
      const rows = units().filter((row) => row.signal);
      if (!rows.length) return null;
      return { height: tall(rows.length), option: {
        grid: { left: margin(170), right: 40, top: 10, bottom: 44 },
        xAxis: { type: "value", ...axis({ more: { name: `against the rest, by ${method}` } }) }, yAxis: vertical(rows, (row) => row.name),
        dataZoom: window_(rows.length),
        tooltip: tooltip((at) => { const row = rows[at.data.value ? at.data.value[1] : at.data.coords[0][1]];
          return `${cut(row.name, 60)}\n${number(row.difference, true)}` + (row.low == null ? `\nno interval: ${none}` : `, 95 % ${ends(row)}`) +
            `\n${row.actions} actions, ${row.traces} traces, ${row.tasks} tasks, of which ${row.signal} differ`; }),
        series: [
          { type: "lines", coordinateSystem: "cartesian2d", clip: true, symbol: "none", lineStyle: { width: 3, opacity: 0.55, curveness: 0 },
            data: rows.map((row, i) => [row, i]).filter(([row]) => row.low != null)
              .map(([row, i]) => ({ coords: [[row.low, i], [row.high, i]], lineStyle: { color: tint(row) } })) },
          { type: "scatter", symbolSize: 0, silent: true, data: rows.flatMap((row, i) => (row.low == null ? [] : [[row.low, i], [row.high, i]])) }, // lines do not widen an axis
          { type: "scatter", symbolSize: 11, clip: true, data: rows.map((row, i) => ({ value: [row.difference, i],
            itemStyle: { color: tint(row) } })),
            markLine: { silent: true, symbol: "none", data: [{ xAxis: 0 }], label: { show: false }, lineStyle: { color: color("soft"), type: "solid", width: 1 } } },
        ],
      } };
    });
    const fill = () => {
      picture.draw();
      const { note, empty } = overview.methods[method];
      const apart = !overview.alike[method][by]; // without evidence even means would read as a ranking
      const columns = [[by, (r) => r.name], ["actions", (r) => number(r.actions), "n"], ["traces", (r) => number(r.traces), "n"], ["tasks", (r) => number(r.tasks), "n"],
        ...(!apart ? [] : [["advantage", (r) => number(r.advantage, true), "n"], ["against the rest", (r) => number(r.difference, true), "n"], ["95 % interval", (r) => (r.low == null ? "–" : ends(r)) + (r.stands_out ? " *" : ""), "n"], ["tasks that differ", (r) => number(r.signal), "n"]])];
      noted.replaceChildren(...[note, overview.alike[method][by], ...empty].filter(Boolean).map((line) => make("p", { class: "note" }, prose(line))));
      holder.replaceChildren(...(!units().length ? [] : [table(columns, units(), "Means by unit", 15), ...(apart ? [explained(columns, units(), ...overview.unit_terms[method][by])] : [])]));
    };
    const parts = [make("div", { class: "controls" },
      choice("Method", methods.map((name) => [name, name]), (value) => { method = value; fill(); }, method)[0],
      choice("By", (kinds.length ? kinds : [by]).map((name) => [name, name]), (value) => { by = value; fill(); }, by)[0]), noted, picture.box, holder];
    if (nothing) untold("who", "Who earned the reward", summary.doubt ?? "no method tells", () => fill(), ...parts);
    else section("who", "Who earned the reward", summary.doubt ? make("p", {}, sentence(summary.doubt)) : null, ...parts);
    fill();
  }

  if (ledger) {
    const several = ["role", "agent", "turn"].filter((name) => methods.some((method) => who[method][name].length > 1));
    const levels = several.length ? several : ["turn"];
    let level = levels[0];
    const names = { expected: "expected at the start", outcome: "outcome, after the last action", unexplained: "unexplained", remainder: "remainder of exact arithmetic" };
    const size = scored.reduce((all, row) => all + Math.abs(row.reward), 0);
    const settled = Object.fromEntries(levels.map((name) => [name, ledger.levels[name].map((row) =>
      (row.entry === "remainder" ? row : { ...row, sum: undusted(row.sum, size) }))]));
    const rows = () => settled[level];
    const name = (row) => (row.entry === "increment" ? (level === "turn" ? `turn ${row.name}` : row.name) : names[row.entry]);
    const holder = make("div");
    const picture = chart("Entries of the ledger, summed over all traces", () => ({
      height: tall(rows().length), option: {
        grid: { left: margin(210), right: 40, top: 10, bottom: 44 }, dataZoom: window_(rows().length),
        xAxis: { type: "value", ...axis({ more: { name: "reward, summed over traces" } }) },
        yAxis: vertical(rows(), name, 210),
        tooltip: tooltip((at) => `${cut(name(rows()[at.dataIndex]), 60)}\n${number(at.value, true)}`),
        series: [{ type: "bar", barMaxWidth: 16, data: rows().map((row) => ({ value: row.sum,
          itemStyle: { color: row.entry !== "increment" ? color("none") : color(row.sum < 0 ? "minus" : "plus") } })) }],
      },
    }));
    const fill = () => {
      picture.draw();
      holder.replaceChildren(table([["entry", (r) => r.entry], [level, (r) => r.name ?? ""], ["traces", (r) => number(r.traces), "n"], ["sum", (r) => number(r.sum, true), "n"],
        ["mean over traces", (r) => number(r.sum / r.traces, true), "n"]], rows(), "Entries of the ledger", 15));
    };
    const parts = [make("p", { class: "note" }, "Reward = expected + increments + outcome + unexplained + remainder, exactly, in every trace. Claims on one event are averaged, never added."),
      make("ul", {}, ledger.lines.map((line) => make("li", {}, prose(line.trim())))),
      make("div", { class: "controls" }, choice("Level", levels.map((name) => [name, name]), (value) => { level = value; fill(); }, level)[0]), picture.box, holder];
    if (Object.values(settled).flat().some((row) => row.entry === "increment" && row.sum)) section("ledger", "Ledger", ...parts);
    else untold("ledger", "Ledger", "no action has a share of the reward", () => fill(), ...parts);
    fill();
  }

  if (comparison) {
    const apart = (of) => of.some((row, i) => row.some((value, j) => i !== j && value != null));
    const matrix = (title, of, without) => {
      if (!apart(of)) return make("div", {}, make("h3", {}, title), make("p", { class: "note" }, without));
      const cells = comparison.methods.flatMap((_, i) => comparison.methods.map((_, j) => [j, i, of[i][j]]));
      const room = () => (drawn.box.clientWidth - margin(130) - 16) / comparison.methods.length - 6;
      const drawn = chart(title, () => ({
        height: 104 + 44 * comparison.methods.length, option: {
          grid: { left: margin(130), right: 16, top: 8, bottom: 54 },
          xAxis: { type: "category", data: comparison.methods, ...axis({ split: false, axisLabel: { interval: 0, hideOverlap: false, overflow: "breakAll", lineHeight: 14, width: room(),
            formatter: (name) => (room() < 80 ? name.replaceAll("_", "_\n") : name) } }) },
          yAxis: { type: "category", inverse: true, data: comparison.methods, ...axis({ split: false, axisLabel: { width: margin(130) - 14, overflow: "truncate" } }) },
          visualMap: { show: false, min: -1, max: 1, inRange: { color: [color("minus"), color("shade"), color("plus")] } },
          series: [{ type: "heatmap", data: cells.map(([x, y, v]) => [x, y, v ?? "-"]),
            label: { show: true, color: color("text"), fontWeight: 600, backgroundColor: color("surface"), padding: [2, 5], borderRadius: 4, formatter: (at) => number(cells[at.dataIndex][2] == null ? null : +cells[at.dataIndex][2].toFixed(2)) },
            itemStyle: { borderColor: color("surface"), borderWidth: 2 } }],
        },
      }));
      return make("div", {}, make("h3", {}, title), drawn.box);
    };
    section("methods", "Methods side by side",
      make("p", { class: "note" }, "Spearman's rank correlation of advantages, from −1 to 1. Within traces: who in a trace, apart from how the trace went. A method has no correlation where it gives all actions one number; its cells are empty."),
      make("div", { class: "two" }, 
        matrix("Over all actions", comparison.rank_correlation, "No two methods give different numbers to actions that both answer."),
        matrix("Within traces", comparison.rank_correlation_within_traces, "No two methods tell the actions of a trace apart.")),
      comparison.roles.length < 2 ? null : table([["part of Σ|credit − baseline|", (r) => r.name], ...comparison.roles.map((role, i) => [role, (r) => number(r.of[i]), "n"])],
        [{ name: "actions", of: comparison.actions_by_role }, ...comparison.methods.map((name) => ({ name, of: comparison.share_by_role[name] }))], "Shares by role"),
      make("h3", {}, "Where they differ most, one action a trace"),
      !comparison.disagreements.length ? make("p", { class: "note" }, "They differ on no action of a group with different outcomes.") : table([of_trace, ["event", (r) => opener(r.trace, r.event), "i"], ["role", (r) => r.role], ["type", (r) => r.type],
        ...comparison.methods.map((name) => [name, (r) => number(r[name] ?? r[`advantage.${name}`], true), "n"])], comparison.disagreements, "Disagreements"), unheld(comparison.disagreements));
  }

  const signed = (key) => [key.replaceAll("_", " "), (r) => number(r[key], true), "n"];
  const counted = (...keys) => keys.map((key) => [key.replaceAll("_", " "), (r) => number(r[key]), "n"]);
  const tenths = (share) => (share == null ? "–" : percent(share, 1));
  const answer = (title, name, columns, note, most = 15) => {
    const { rows, without } = asked[name];
    if (!rows.length) { unanswered(title, without || "nothing of the kind is in the log"); return []; }
    return [make("h3", {}, title), table(columns, rows, title, most),
      ...[note, without && sentence(without)].filter(Boolean).map((text) => make("p", { class: "note" }, text))];
  };
  const answers = (id, title, ...parts) => (parts.flat().length ? section(id, title, ...parts.flat()) : null);
  const [told, silent] = [true, false].map((known) => asked.doctor.filter((row) => (row.found != null) === known).sort((a, b) => b.found - a.found));
  section("doctor", "Doctor",
    ...overview.verdicts.slice(1).map((one) => make("p", {}, ended(one.told))),
    make("p", { class: "note" }, "Found is a fact about the log; whether it is a fault is yours to say."),
    ...(told.length ? [table([["check", (r) => r.check.replaceAll("_", " ")], ["finding", (r) => r.verdict, "w"], ...counted("statistic", "limit", "p"),
      ["what was found", (r) => r.words, "t"], ...(told.some((r) => r.found || r.alone) ? [["traces", (r) => (r.found || r.alone ? r.traces.slice(0, 3).map((id) => (traces.some((row) => row.trace === id) ? opener(id) : id)) : ""), "i", ids]] : [])],
    told, "Checks"), explained([["finding", (r) => r.verdict], ["p", (r) => number(r.p)]], told, ["finding: found", "found: statistic above its limit, or p at most 0.05 where there is no limit"],
      ["finding: in ", "in traces: so many show it, in no more tasks than by chance"],
      ["p: ", "p: corrected for all tests; where there is one, statistic and limit are parts of tasks"])] : []));
  for (const row of silent) unanswered(sentence(row.check.replaceAll("_", " ")).slice(0, -1), row.words);
  const more = [["agent", (r) => r.agent], ...counted("step", "decisions", "more"), signed("value"), ...counted("stderr")];
  answers("decisions", "Decisions and the team", ...(!scored.length ? [] : [
    answer("When to stop", "stop", more, "Value: E[R | go on] − E[R | stop]."),
    answer("Whether to spawn", "spawn", more, "Value: E[R | spawn] − E[R | not]."),
    answer("Whom to ask", "whom", [["agent", (r) => r.agent], ...counted("step", "decisions"), ["asked", (r) => r.candidate], ...counted("picks"), signed("value"), ...counted("stderr")],
      "Value: E[R | asked] − E[R]."),
    answer("What aggregation added", "aggregate", [["agent", (r) => r.agent], ...counted("decisions", "results", "outcome"), signed("over_best"), signed("over_mean")])]).flat(),
    answer("Critical steps of decisions", "steps", [["agent", (r) => r.agent], ["type", (r) => r.type], ...counted("decisions", "steps"), ["part of all", (r) => tenths(r.share), "n"]]),
    answer("The team over time", "team", [["events up to", (r) => percent(r.part), "n"], ...counted("births", "deaths", "size")]));
  const amount = (of, partly) => mark(of.missing || partly, number(of.total));
  const reach = (name) => [[name, (r) => r.unit], ...least("events", "traces", "reached", "actions", "answers"), ["credit at risk", (r) => tenths(r.credit_at_risk), "n"]];
  const logged = asked.total.logged_money.total && !asked.as_logged ? ["logged_money"] : [];
  const sums = (...keys) => keys.map((key) => [head(key), (r) => amount(r[key], lacks(r)), "n"]);
  const whose = (r) => r.unit + (r.outside ? ", in no sum" : "");
  const money = sums(...(priced ? ["money"] : []), ...logged);
  const costs = (unit, name) => answer(`Costs by ${unit}`, name, [[unit, whose], ...money, ...sums("tokens", "input_tokens"), ...least("events", "tool_calls"), ...sums("seconds")]);
  const in_traces = ["traces", (r) => mark(r.lacks_traces && !overview.few_lacking, number(r.traces) + (r.traces === r.of_traces ? "" : ` of ${number(r.of_traces)}`)), "n"];
  const of_tool = new Map(triage.tools.map((row) => [row.tool, row]));
  const empty = triage.tools.some((row) => row.empty) ? [["empty results", (r) => mark(lacks(r) || r.lacks_empty, number(r.empty)), "n"]] : [];
  const part = (of, partly) => amount(of, partly) + (of.missing ? `, of ${plural(traces.length - of.missing, "trace")}` : "");
  const summed = [
    ["Tokens generated", amount(asked.total.tokens, lost)], ["Tokens read", amount(asked.total.input_tokens, lost)],
    ["Money at the given prices", priced ? amount(asked.total.money, lost) : null],
    ...Object.entries(stated).map(([name, of]) => [`Logged costs.${name}`, of.total == null ? null : part(of)]),
    ["Seconds of wall clock", clock.total == null ? null : part(clock, lost)],
    ["Seconds of work", asked.total.seconds.total == null ? null : amount(asked.total.seconds, lost)],
  ];
  section("costs", "Costs",
    facts(summed),
    explained([["", ([, text]) => text ?? ""]], summed, ["≥", `≥: a part is not logged${priced ? ", or has no price" : ""}`]),
    overview.few_lacking ? make("p", { class: "note" }, sentence(overview.few_lacking)) : null,
    asked.repeated ? make("p", {}, sentence(asked.repeated)) : null,
    asked.costs.rows.length > 1 ? costs(asked.costs_by, "costs") : null,
    ...(asked.of_trace.rows.length ? answer(`Costs of a trace by ${asked.of_trace.by}`, "of_trace", [[asked.of_trace.by, whose], in_traces, ...money, ...sums("tokens", "input_tokens", "tool_calls", "seconds")],
      `${sentence(asked.of_trace.note)}${asked.unlike ? ` ${sentence(asked.unlike)}` : ""}`) : []),
    named ? costs("model", "models") : null,
    ...asked.gaps.map((line) => make("p", { class: "note" }, line)),
    asked.tools.rows.length < 2 ? null // one row repeats the sums
      : answer("Costs by tool", "tools", [["tool", whose], ...money, ...least("tool_calls"), ["errors", (r) => amount(r.errors, lacks(r)), "n"], ["loops", (r) => mark(lacks(r), number(of_tool.get(r.unit)?.loops)), "n"], ...empty.map(([head, told, kind]) => [head, (r) => told(of_tool.get(r.unit) ?? {}), kind]), ...sums("seconds")]));
  const item = [["section", (r) => r.section], ["item", (r) => r.item]], unknown = asked.card.rows.filter((row) => row.missing);
  section("card", asked.untrusted.rows.length ? "Card and untrusted events" : "Card",
    asked.untrusted.rows.length ? make("h3", {}, "Card") : null, table([...item, ["value", (r) => r.value, "t"]], asked.card.rows.filter((row) => row.value), "Values of the card", 60), // a card is read whole
    unknown.length ? make("details", {}, make("summary", {}, `What the card lacks (${number(unknown.length)})`), table([...item, ["why", (r) => r.missing, "t"]], unknown, "What the card lacks", 60)) : null,
    answer("What untrusted events reach", "untrusted", reach("source")),
    answer("By attack vector", "vectors", reach("attack vector")));

  const took = [heads.seconds, (r) => mark(lacks(r) || r.lacks_seconds, number(r.seconds == null || r.seconds < 10 ? r.seconds : Math.round(r.seconds))), "n"];
  const of_agent = ["money", "logged_money"].filter((key) => triage.agents.some((r) => r[key])).map((key) => [head(key), (r) => (r[key] ? amount(r[key], lacks(r)) : "–"), "n"]);
  const acts = ["traces", (r) => mark(r.lacks_traces && !overview.few_lacking, number(r.traces)), "n"];
  const alone = triage.agents.length === 1 && triage.tools.length > 1; // a table of one agent compares nothing
  const [columns, rows] = alone ? [[["tool", (r) => r.tool || "not named"], acts, ...least("calls", "errors", "retries", "loops"), ...empty, took], triage.tools]
    : [[["agent", (r) => r.agent], acts, ...least("events", "actions", "calls", "errors", "retries", "loops", "tokens"), took, ...of_agent], triage.agents];
  const of = (some, every) => [(r) => (r[every] ? `${number(r[some])} of ${number(r[every])}` : "–"), "n"];
  const by_kind = [["kind of task", (r) => r.kind], ["agent", (r) => r.agent], ["traces", ...of("traces", "of_traces")], ["succeeded", ...of("succeeded", "of_known")], ["succeeded without it", ...of("others_succeeded", "of_others")]];
  const shares = sides ? sides.heads.map((head, i) => [`in ${head}`, (r) => (r.of_sides.length ? percent(r.of_sides[i] / triage.sides[i]) : "–"), "n"]) : [];
  section("triage", "What to look at first",
    triage.quiet ? make("p", {}, triage.quiet) : null,
    ...triage.endings.map((one) => make("p", {}, `${one.words}. ${by_side(one)}`, opener(one.trace, one.event, one.event))),
    triage.suspects.length ? table([of_trace, ...(triage.suspects.some((r) => r.outcome != null) ? [[`outcome${of_log}`, (r) => number(r.outcome), "n"]] : []), ["event", (r) => opener(r.trace, r.event || undefined, r.event || "all of it"), "i"], ["agent", (r) => r.agent], ...(triage.suspects.some((r) => r.traces > 1) ? [["traces", (r) => number(r.traces), "n"], ...(triage.failed != null ? ["failed", "succeeded"].map((kind, i) => [triage.kinds[i], (r) => (r.failed || r.succeeded ? percent(r[kind] / (r[`of_${kind}`] ?? triage[kind])) : "–"), "n"]) : [])] : []), ...shares, ...(triage.suspects.some((r) => r.text) ? [["why", (r) => r.why, "y"], ["text", (r) => r.text, "t"]] : [["why", (r) => r.why, "t"]])], triage.suspects, "Events to look at") : null, unheld(triage.suspects),
    make("div", { class: "terms" }, ...[triage.commonness, shares.length && triage.suspects.length ? `in ${sides.heads.join(", in ")}: part of the ${triage.sides.map((count) => number(count)).join(" and ")} traces of each side with the same cause; not tested` : ""].filter(Boolean).map((line) => make("p", { class: "note" }, line))),
    make("h3", {}, alone ? "Tools" : "Agents"),
    table(columns, rows, alone ? "Tools" : "Agents", 15), explained(columns, rows, ...triage.legend),
    ...(overview.agents_by_kind.length ? [make("h3", {}, "Agents by kind of task"), table(by_kind, overview.agents_by_kind, "Agents by kind of task", 30)] : []));
  page.rest();
  if (overview.hints.length) section("more", "To do more", make("ul", {}, overview.hints.map((line) => make("li", {}, prose(line)))));
})();
