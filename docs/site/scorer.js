// The order of search results: guides and reference first, then the pages for builders, then decision records.
var Scorer = {
  score: ([page, , , , score]) => {
    if (/^(quickstart|tutorial|concepts|guide\/)/.test(page)) return score + 12;
    if (/^reference\//.test(page)) return score + 6;
    if (/^adr\//.test(page)) return score - 12;
    if (/^(security|support|compatibility|index)$/.test(page)) return score;
    return score - 4;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
