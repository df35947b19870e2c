//! The languages that texts are written in: which words say nothing, and what is left of the others.
//!
//! English words are stemmed after Porter, as they always were; the words of the other languages by the algorithms of
//! Snowball. Indexes hold the stems, so what this file makes of a word stays as it is: other stems are another language.

use std::{collections::HashSet, sync::LazyLock};

use rust_stemmers::{Algorithm, Stemmer};
use serde::{Deserialize, Serialize};

use super::stem::stem;

/// A language that texts can be analysed in. The names are those that are stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// English.
    #[default]
    English,
    /// German.
    German,
    /// Spanish.
    Spanish,
    /// French.
    French,
    /// Italian.
    Italian,
    /// Portuguese, of Portugal and of Brazil.
    Portuguese,
}

/// English words that occur nearly everywhere.
const ENGLISH: [&str; 33] = [
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it", "no",
    "not", "of", "on", "or", "such", "that", "the", "their", "then", "there", "these", "they", "this", "to",
    "was", "will", "with",
];

/// Articles, pronouns, prepositions, conjunctions, and forms of "to be" and "to have".
const GERMAN: &str = "\
    aber als am an auch auf aus bei beim bin bis bist da damit dann das daß dass dein deine dem den denn der des dich \
    die dies diese diesem diesen dieser dieses dir doch dort du durch ein eine einem einen einer eines er es euch euer \
    eure für gegen hab habe haben hat hatte hatten hier hin hinter ich ihm ihn ihnen ihr ihre ihrem ihren ihrer im in \
    indem ins ist ja jede jedem jeden jeder jedes kein keine keinem keinen keiner man mein meine meinem meinen meiner \
    mich mir mit nach nicht noch nun nur ob oder ohne s sehr sein seine seinem seinen seiner seit sich sie sind so \
    solche solchem solchen solcher über um und uns unser unsere unter vom von vor war waren warst was weil welche \
    welchem welchen welcher welches wenn wer werde werden wie wieder wir wird wo zu zum zur zwar zwischen";

const SPANISH: &str = "\
    a al algo ante aquel aquella aquello aquí así aunque cada como con contra cual cuando de del desde donde durante e \
    el él ella ellas ellos en entre era eran es esa esas ese eso esos esta está estaba estado están estar estas este \
    esto estos fue fueron ha había han has hasta hay he la las le les lo los más me mi mí mis mucho muy nada ni no nos \
    nosotros nuestra nuestras nuestro nuestros o os otra otro para pero poco por porque que qué quien quién se sea ser \
    si sí sido sin sobre son soy su sus también tan tanto te ti tiene tienen todo todos tu tú tus u un una unas uno \
    unos vosotros y ya yo";

const FRENCH: &str = "\
    à ai as au aux avait avec avez avoir avons c ce ceci cela ces cet cette ceux chez comme d dans de des donc du elle \
    elles en es est et étaient était étant été êtes être eu eux fut il ils j je l la le les leur leurs lorsqu lui m ma \
    mais me même mes moi mon n ne ni nos notre nous on ont or ou où par pas pour puisqu qu quand que quel quelle \
    quelles quels qui quoi s sa sans se sera ses si soi soit sommes son sont sous suis sur t ta te tes toi ton tu un \
    une vos votre vous y";

const ITALIAN: &str = "\
    a abbiamo ad agli ai al all alla alle allo anche avere aveva avevano c che chi ci ciò come con contro cui d da dagli \
    dai dal dall dalla dalle dallo degli dei del dell della delle dello di dov dove e è ed era erano essere gli ha hai \
    hanno ho i il in io l la le lei li lo loro lui m ma me mi mia mie miei mio ne negli nei nel nell nella nelle nello \
    noi non nostra nostre nostri nostro o per perché però più quale quando quanto quella quelle quelli quello questa \
    queste questi questo s se sei si sia siamo sono sta su sua sue sugli sui sul sull sulla sulle sullo suo suoi t ti \
    tra tu tua tue tuo tuoi tutti tutto un una uno v vi voi vostra vostro";

const PORTUGUESE: &str = "\
    a à ao aos aquela aquelas aquele aqueles aquilo as às até com como da das de dela delas dele deles depois do dos e \
    é ela elas ele eles em entre era eram essa essas esse esses esta está estamos estão estas estava estavam este estes \
    eu foi foram há isso isto já lhe lhes mais mas me mesmo meu meus minha minhas muito na não nas nem no nos nós nossa \
    nossas nosso nossos num numa o os ou para pela pelas pelo pelos por porque qual quando que quem são se seja sem ser \
    será seu seus só sob sobre somos sou sua suas também te tem têm tenho ter teu teus tinha tu tua tuas um uma você \
    vocês vos";

impl Language {
    /// Whether an apostrophe belongs to the words of this language. Elsewhere it parts them: what was left of an
    /// article before it says nothing.
    pub(super) fn has_apostrophes(self) -> bool {
        self == Language::English
    }

    /// Whether a word, in lower case, occurs nearly everywhere.
    pub(super) fn is_common(self, word: &str) -> bool {
        static SETS: LazyLock<[HashSet<&str>; 5]> = LazyLock::new(|| {
            [GERMAN, SPANISH, FRENCH, ITALIAN, PORTUGUESE].map(|words| words.split_whitespace().collect())
        });
        let [german, spanish, french, italian, portuguese] = &*SETS;
        match self {
            Language::English => ENGLISH.contains(&word),
            Language::German => german.contains(word),
            Language::Spanish => spanish.contains(word),
            Language::French => french.contains(word),
            Language::Italian => italian.contains(word),
            Language::Portuguese => portuguese.contains(word),
        }
    }

    /// What is left of a word in lower case without its endings.
    pub(super) fn stem(self, word: &str) -> String {
        let by = |algorithm| Stemmer::create(algorithm).stem(word).into_owned();
        match self {
            Language::English => stem(word),
            Language::German => by(Algorithm::German),
            Language::Spanish => by(Algorithm::Spanish),
            Language::French => by(Algorithm::French),
            Language::Italian => by(Algorithm::Italian),
            Language::Portuguese => by(Algorithm::Portuguese),
        }
    }
}
