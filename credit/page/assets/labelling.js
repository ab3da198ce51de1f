"use strict";
/* Labels of traces: a person gives outcomes, which the server writes to a file after each change. */
(() => {
  const { data, make, number, plural, cut, held, main, part } = page;
  if (!data.explorer.labelled) return;
  const UNTOLD = "cannot tell"; // in place of an outcome: somebody looked
  let labels = {}, row = 0, sent = Promise.resolve();
  const waiting = new Set(), past = []; // rows whose answer is on its way; answers that can be undone, with what was before
  const progress = make("span", {});
  const state = make("span", { role: "status" });
  const trouble = make("p", { role: "alert" });
  const note = make("input", { type: "text", maxlength: "2000", autocomplete: "off" });
  const reward = make("input", { type: "number", step: "any", autocomplete: "off" });
  const words = make("div", { class: "receipt" });
  /* What a trace was asked and what it came to is what is judged; it stood in a table below the whole session. */
  const quote = () => {
    const view = main.view, told = view.event.map((_, e) => e).filter((e) => view.text?.[e]);
    const [end, early] = view.early ?? [], last = view.text?.[end] ? end : told.at(-1);
    const ends = early ? `It ends early: ${last === end ? early : "after this"}` : "It ends"; // what came then is not in the log
    const [asked, result] = view.task;
    const whole = [["Asked", "What the trace was asked", asked], ["Result", "What it came to", result]].filter(([, , text]) => text);
    const said = [["It begins", "First words of the trace", told[0]], [ends, "Last words of the trace", last]].slice(told.length < 2 ? 1 : 0);
    words.replaceChildren(...whole.flatMap(([where, name, text]) => [make("p", {}, `${where}:`), make("blockquote", { tabindex: "0", "aria-label": name }, text)]),
      ...(told.length ? said : []).filter(([where, , e]) => ![asked, where === "It ends" ? result : ""].includes(view.text[e])).flatMap(([where, name, e]) => [
      make("p", {}, `${where}: `, make("button", { type: "button", onclick: () => main.select(e) }, "Show the event")),
      make("blockquote", { tabindex: "0", "aria-label": name }, view.text[e])]));
  };
  const button = (text, key, act) => make("button", { type: "button", onclick: act, "aria-keyshortcuts": key }, `${text} `, make("kbd", {}, key));

  const known = (i) => labels[String(i)];
  const show = () => {
    const count = Object.keys(labels).length;
    const untold = Object.values(labels).filter((label) => label.reward === UNTOLD).length;
    progress.textContent = `${number(count)} of ${number(held.length)} traces have a label${untold ? `, ${number(untold)} of them “cannot tell”` : ""}.` + (count === held.length ? " None is left." : "")
      + (held.some((_, i) => told(i)) ? ` ${number(held.filter((_, i) => bare(i)).length)} have neither a label nor an outcome.` : "");
    const label = known(row);
    state.textContent = label ? `This trace: ${label.reward === UNTOLD ? UNTOLD : `outcome ${number(label.reward)}`}${label.rater ? `, by ${label.rater}` : ""}.` : "This trace has no label.";
  };
  const take = (answer) => { labels = answer.rows; file.textContent = answer.file; rater.textContent = answer.rater ? `, as ${answer.rater}` : ""; show(); };
  const file = make("code", { class: "path" }), rater = make("span", {});
  const ask = async (options) => {
    const answer = await fetch("labels", options);
    if (!answer.ok) throw new Error(await answer.text());
    take(await answer.json());
  };
  const failed = (at) => (error) => ask({}).catch(() => {}).then(() => {
    trouble.textContent = `Not saved: ${error.message}`;
    main.show(at);
  });
  const send = (change, kept) => {
    const body = () => JSON.stringify({ ...change, seen: known(change.row) ?? null }); // as the answers before it left it
    trouble.textContent = "";
    waiting.add(change.row);
    sent = sent.then(async () => {
      const before = known(change.row);
      await ask({ method: "POST", headers: { "Content-Type": "application/json" }, body: body() });
      if (kept) past.push({ row: change.row, reward: before?.reward ?? null, note: before?.note ?? "" });
    }).catch(failed(change.row)).finally(() => { waiting.delete(change.row); show(); });
  };
  const save = (amount) => send({ row, reward: amount, note: note.value }, true);
  const open = (i) => !(known(i) || waiting.has(i));
  const judged = new Set(data.explorer.judged); // by people, in a reward of the log that may be another one
  const told = (i) => held[i].reward != null || judged.has(i);
  const bare = (i) => open(i) && !told(i); // nothing is known of it: a label of it tells most
  /* Traces in their order, those that tell most first: with nothing known of them, beside one of their group of which something is. */
  const first = (rows) => {
    const begun = new Set(held.filter((_, i) => told(i) || !open(i)).map((one) => one.group));
    return rows.find((i) => bare(i) && begun.has(held[i].group)) ?? rows.find(bare) ?? rows.find(open);
  };
  const order = data.explorer.order; // rows, as a sample is drawn from them
  /* Round from the trace shown. */
  const go = (step, unlabelled) => {
    const begin = order.indexOf(row);
    const around = order.map((_, k) => order[(begin + step * (k + 1) + held.length) % held.length]);
    const next = unlabelled ? first(around) : around[0];
    if (next != null) main.show(next);
  };
  const judge = (amount) => { save(amount); go(1, true); }; // the next trace at once: an answer that fails leads back
  const undo = () => { sent = sent.then(() => { const last = past.pop(); if (last) { send(last, false); main.show(last.row); } }); };
  const acts = { g: () => judge(1), b: () => judge(0), t: () => judge(UNTOLD), z: undo, u: () => save(null), n: () => go(1, true), p: () => go(-1, false) };

  part.querySelector("h2").after(make("div", { class: "label" },
    make("div", { class: "controls" }, make("label", {}, "Note (write it before the answer)", note),
      button("Good: 1", "g", acts.g), button("Bad: 0", "b", acts.b), button("Cannot tell", "t", acts.t), button("Undo", "z", acts.z)),
    make("details", { open: !matchMedia("(max-width: 40rem)").matches }, make("summary", {}, "More answers"), make("div", { class: "controls" },
      make("label", {}, "Another outcome", reward), make("button", { type: "button", onclick: () => { if (reward.value !== "" && Number.isFinite(+reward.value)) save(+reward.value); } }, "Save"),
      button("Remove", "u", acts.u), button("Next unlabelled", "n", acts.n), button("Previous", "p", acts.p))),
    make("p", {}, state, " ", progress), trouble), words);
  part.querySelector(".label").before(make("p", { class: "note" }, "Is the outcome of this trace good? Each answer is written at once to ", file, rater, ". Then the next trace comes. Their order is random; each system, verdict and kind of task has its share. Other commands read the file with ",
    make("code", {}, "--rewards"), ".", data.overview.corpus.with_outcome ? ` The log has outcomes of ${plural(data.overview.corpus.with_outcome, "trace")}. They are no labels, and are not shown here.` : ""));
  page.lead("explorer");
  // What is to be judged comes first, and counts of errors before the answer would sway it.
  const others = [...document.querySelectorAll("main > section")].filter((one) => one !== part);
  part.after(make("details", {}, make("summary", {}, "What the logs count, for after your answer"), ...["#lead", "#tiles", "nav"].map((one) => document.querySelector(one)), ...others));
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) return;
    if (acts[event.key]) { event.preventDefault(); acts[event.key](); }
  });
  reward.addEventListener("keydown", (event) => { if (event.key === "Enter" && reward.value !== "") save(+reward.value); });
  note.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === "Escape") note.blur(); });
  page.shown = (shown) => { quote(); row = shown; note.value = known(row)?.note ?? ""; const stated = known(row)?.reward; reward.value = stated === UNTOLD ? "" : stated ?? ""; show(); };

  ask({}).catch((error) => { state.textContent = `The labels cannot be read: ${error.message}`; }).then(() => {
    if (held.length) main.show(first(order) ?? order[0]);
  });
})();
