"""Which prompts are worth a search: all but those that name nothing to search for.

Decided by tables alone. A prompt is left out when every word of it is in them; one word more, and
it is searched for: a search too many costs milliseconds, and its answer has a floor of its own.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping

SHORTEST = 15  # characters
_LONGEST = 200  # characters; nobody says yes at greater length

ACKNOWLEDGEMENTS: Mapping[str, tuple[str, ...]] = {
    "en": (
        "yes", "yeah", "yep", "yup", "y", "no", "nope", "nah", "n", "ok", "okay", "k", "sure",
        "sure thing", "of course", "right", "correct", "exactly", "agreed", "i agree", "approved",
        "confirmed", "done", "fine", "good", "great", "nice", "perfect", "awesome", "excellent",
        "wonderful", "cool", "amazing", "brilliant", "super", "well done", "good job", "great job",
        "nice work", "great work", "good work", "thanks", "thank you", "thanks a lot", "thx", "ty",
        "cheers", "much appreciated", "appreciate it", "lgtm", "looks good", "looks good to me",
        "look good", "looks great", "looks fine", "sounds good", "sounds great", "sounds right",
        "makes sense", "that makes sense", "got it", "i see", "understood", "understand",
        "i understand", "never mind", "nevermind", "no problem", "no worries", "that works",
        "works for me", "works", "it works", "that's it", "that's all", "that's right",
        "that's fine", "that is correct", "all good", "hi", "hello", "hey", "good morning", "bye",
        "goodbye", "hm", "hmm", "wow", "go on", "go ahead", "go for it", "carry on", "keep going",
        "continue", "proceed", "do so", "your choice", "up to you", "you decide", "your call",
        "as you wish", "as you like", "either is fine", "whatever",
    ),
    "de": (
        "ja", "jo", "nein", "nee", "gut", "sehr gut", "klar", "na klar", "genau", "stimmt",
        "richtig", "passt", "passt so", "danke", "danke schön", "danke dir", "vielen dank", "prima",
        "super", "perfekt", "toll", "alles klar", "verstanden", "einverstanden", "in ordnung",
        "weiter", "mach weiter", "weiter so", "fahre fort", "gerne", "bitte", "ja bitte", "okay",
        "sieht gut aus", "klingt gut", "mach das", "mach es", "mach mal", "weitermachen",
    ),
    "fr": (
        "oui", "non", "d'accord", "merci", "merci beaucoup", "parfait", "très bien", "bien",
        "vas y", "continue", "continuez", "c'est bon", "ça marche", "exactement", "super", "génial",
        "s'il te plaît", "s'il vous plaît", "bien sûr", "compris",
    ),
    "es": (
        "sí", "si", "no", "vale", "gracias", "muchas gracias", "perfecto", "muy bien", "bien",
        "de acuerdo", "claro", "adelante", "sigue", "continúa", "continua", "exacto", "por favor",
        "está bien", "entendido", "genial", "hazlo",
    ),
    "pt": (
        "sim", "não", "obrigado", "obrigada", "muito obrigado", "perfeito", "certo", "beleza",
        "continue", "pode continuar", "ótimo", "está bom", "tá bom", "por favor", "entendi",
    ),
    "it": (
        "sì", "va bene", "grazie", "grazie mille", "perfetto", "certo", "esatto", "vai", "continua",
        "vai avanti", "procedi", "ottimo", "per favore", "d'accordo", "capito",
    ),
    "nl": ("nee", "goed", "prima", "bedankt", "dank je", "ga door", "ga verder", "klopt", "top"),
    "pl": ("tak", "nie", "dobrze", "dzięki", "dziękuję", "super", "kontynuuj", "świetnie", "jasne"),
    "tr": ("evet", "hayır", "tamam", "teşekkürler", "devam", "devam et", "güzel", "harika"),
    "ru": (
        "да", "нет", "хорошо", "ок", "окей", "спасибо", "спасибо большое", "отлично", "верно",
        "продолжай", "продолжайте", "дальше", "давай", "понял", "понятно", "ладно", "пожалуйста",
        "супер",
    ),
    "uk": ("так", "ні", "добре", "дякую", "продовжуй", "чудово", "гаразд", "далі"),
    "zh": (
        "是", "是的", "对", "对的", "好", "好的", "好吧", "可以", "行", "没问题", "谢谢", "谢谢你",
        "多谢", "继续", "继续吧", "请继续", "同意", "明白", "明白了", "知道了", "不用", "不",
        "完美", "很好", "不错", "吧", "了", "請繼續", "繼續", "謝謝", "沒問題", "對", "請", "请",
    ),
    "ja": (
        "はい", "いいえ", "うん", "ええ", "了解", "了解です", "了解しました", "ありがとう",
        "ありがとうございます", "お願いします", "よろしくお願いします", "続けて", "続けてください",
        "続けて下さい", "いいね", "いいです", "いいですね", "完璧", "完璧です", "大丈夫",
        "大丈夫です", "その通り", "オッケー", "進めて", "進めてください", "わかりました",
        "分かりました",
    ),
    "ko": (
        "네", "예", "아니요", "아니오", "좋아", "좋아요", "좋습니다", "감사합니다", "고마워",
        "고마워요", "계속", "계속해", "계속해줘", "계속해주세요", "계속 진행해주세요", "알겠습니다",
        "알겠어요", "맞아요", "그래",
    ),
}  # fmt: skip

# What an agent is told to do with what it is at. A verb alone or with these objects names nothing.
DIRECTIVES: Mapping[str, tuple[str, ...]] = {
    "en": (
        "commit", "amend", "push", "pull", "merge", "rebase", "stash", "revert", "undo", "redo",
        "rollback", "roll back", "run", "rerun", "re run", "retry", "try", "try again", "test",
        "retest", "build", "rebuild", "compile", "lint", "format", "typecheck", "type check",
        "check", "recheck", "double check", "verify", "review", "fix", "repair", "debug", "deploy",
        "release", "ship", "publish", "install", "start", "restart", "stop", "cancel", "abort",
        "wait", "pause", "resume", "next", "finish", "complete", "execute", "implement", "apply",
        "save", "clean up", "cleanup", "tidy up", "simplify", "refactor", "update", "explain",
        "show", "show me", "tell me", "look", "have a look", "look at", "take a look at", "do",
        "do over", "make", "begin", "create a pr", "open a pr", "make a pr",
        "create a pull request", "open a pull request", "create a commit", "make a commit",
        "make it work", "make it pass", "make them pass", "get it working", "start over", "move on",
        "create", "open", "create draft", "open draft", "keep it", "use it", "delete it",
        "remove it", "add it",
    ),
    "de": (
        "committe", "commite", "committen", "pushe", "pushen", "teste", "testen", "baue", "starte",
        "behebe", "repariere", "korrigiere", "versuch", "versuche", "probier", "prüfe", "führe",
        "mach", "mache", "nochmal", "noch einmal",
    ),
    "fr": ("corrige", "corrigez", "réessaie", "essaie encore", "lance", "exécute", "teste", "fais"),
    "es": (
        "arréglalo", "corrige", "corrígelo", "ejecuta", "prueba", "intenta", "intenta de nuevo",
        "inténtalo de nuevo", "sube", "haz",
    ),
    "pt": (
        "corrija", "corrige", "execute", "rode", "teste", "tente novamente", "tente de novo",
        "faça",
    ),
    "it": ("correggi", "correggilo", "esegui", "riprova", "prova di nuovo", "testa", "fai"),
    "ru": ("исправь", "запусти", "закоммить", "запушь", "попробуй", "повтори", "сделай", "проверь"),
    "zh": (
        "提交", "推送", "提交代码", "运行测试", "跑测试", "跑一下测试", "重试", "再试一次", "修复",
        "修一下", "开始", "停止", "修复它",
    ),
    "ja": (
        "コミットして", "コミットしてください", "プッシュして", "プッシュしてください", "直して",
        "直してください", "修正して", "修正してください", "テストを実行して",
        "テストを実行してください", "もう一度", "やり直して", "実行して", "実行してください",
    ),
    "ko": (
        "커밋해줘", "커밋해", "커밋하고", "푸시해줘", "푸시해", "고쳐줘", "수정해줘",
        "테스트 실행해줘", "다시", "다시 해줘", "다시 시도해줘", "실행해줘",
    ),
}  # fmt: skip

OBJECTS: tuple[str, ...] = (
    "it", "this", "that", "them", "these", "those", "all", "everything", "all of it", "all of them",
    "both", "one", "ones", "change", "changes", "work", "code", "file", "files", "test", "tests",
    "test suite", "the suite", "unit tests", "build", "linter", "lint", "formatter", "type checker",
    "errors", "error", "failure", "failures", "failing", "failed", "warnings", "warning", "bug",
    "bugs", "issue", "issues", "problem", "problems", "typo", "typos", "plan", "todo", "todos",
    "step", "steps", "task", "tasks", "rest", "remaining", "result", "results", "output", "diff",
    "branch", "main", "master", "origin", "remote", "pr", "pull request", "draft pr", "draft",
    "commit", "message", "commit message", "server", "app", "script", "command", "es", "das",
    "alles", "änderungen", "die tests", "tests aus", "fehler", "den fehler", "le", "les tests",
    "los tests", "las pruebas", "os testes", "i test", "это", "тесты", "ещё раз", "снова",
    "изменения", "它", "测试", "代码", "修改", "変更を", "変更", "これ", "テスト", "변경사항",
    "테스트",
)  # fmt: skip

FILLERS: tuple[str, ...] = (
    "please", "pls", "plz", "kindly", "now", "then", "just", "again", "also", "too", "and", "so",
    "well", "oh", "ah", "the", "a", "an", "my", "your", "our", "to", "with", "on", "for me", "me",
    "can you", "could you", "would you", "will you", "you can", "you may", "you should", "let's",
    "lets", "let us", "i want you to", "i'd like you to", "go", "once more", "one more time",
    "first", "next", "last", "same", "new", "here", "there", "of", "in", "if", "is", "as well",
    "immediately", "directly", "quickly", "right away", "for now", "so far", "very", "much", "up",
    "all right", "alright", "it is", "that is", "und", "dann", "jetzt", "bitte", "die", "der", "et",
    "y", "e", "и", "por", "на", "ください", "です", "で", "を", "option", "number", "no.",
)  # fmt: skip

# A path is no command, though it begins with the same sign.
_ROOTS = "bin|boot|etc|home|lib|mnt|opt|proc|root|sbin|srv|sys|tmp|users|usr|var"
_COMMAND = re.compile(
    rf"/(?!(?:{_ROOTS})(?![\w:.-]))[a-z][\w:.-]*(?=\s|$)"  # /compact, /plugin:skill words
    r"|![\w./~$(\[{\"'-]"  # a line for the shell
    r"|\#(?!\#*\d)(?!.*\n)",  # a line for the client's own memory; more lines are a document
    re.IGNORECASE,
)
_UNSPACED = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


def _normal(text: str) -> str:
    return unicodedata.normalize("NFC", text).casefold().replace("’", "'")


def _phrases() -> dict[str, str]:
    """phrase → what it amounts to; a phrase in two tables counts as the more telling one."""
    known = dict.fromkeys((*OBJECTS, *FILLERS), "")
    for table, meaning in ((ACKNOWLEDGEMENTS, "acknowledgement"), (DIRECTIVES, "directive")):
        known |= {phrase: meaning for phrases in table.values() for phrase in phrases}
    return {_normal(phrase): meaning for phrase, meaning in known.items()}


def _any_of(phrases: Iterable[str]) -> str:
    """The longest first; words of scripts without spaces end anywhere."""
    return "|".join(
        re.escape(phrase) + ("" if _UNSPACED.search(phrase) else r"(?!\w|'\w)")
        for phrase in sorted(phrases, key=lambda phrase: (-len(phrase), phrase))
    )


_MEANING = _phrases()
_PHRASE = re.compile(rf"{_any_of(_MEANING)}|\d{{1,2}}(?!\w)|[a-d](?!\w)")
_WORD = re.compile(r"[^\W_]")


def trivial(prompt: str) -> str:
    """Why a prompt needs no search: short, acknowledgement, slash command, directive; else ""."""
    text = prompt.strip()
    if _COMMAND.match(text):
        return "slash command"
    if len(text) <= _LONGEST and (reason := _said(_normal(text))):
        return reason
    # A character of Chinese, Japanese or Korean says as much as several letters.
    size = sum(2 if _UNSPACED.match(char) else 1 for char in text[:SHORTEST])
    return "short" if size < SHORTEST else ""


def amounts_to(text: str) -> str:
    """acknowledgement or directive, where a text is nothing else; nothing but signs is the former.
    Short is no matter here: a word can be an answer."""
    text = text.strip()
    if not _WORD.search(text):
        return "acknowledgement"
    return _said(_normal(text)) if len(text) <= _LONGEST else ""


def _said(text: str) -> str:
    """What the words amount to, if all of them are in the tables."""
    meanings = set()
    at = _after(text, 0)
    if at == len(text):
        return "acknowledgement" if text else ""  # nothing but signs: a thumbs up, an arrow
    while at < len(text):
        found = _PHRASE.match(text, at)
        if found is None:
            return ""
        meanings.add(_MEANING.get(found[0], ""))
        at = _after(text, found.end())
    return "directive" if "directive" in meanings else max(meanings)


def _after(text: str, at: int) -> int:
    """Where the next word begins."""
    word = _WORD.search(text, at)
    return word.start() if word else len(text)
