"""A form made from declared settings: its controls, pages, one row a setting, errors beside."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.message import Message
from textual.reactive import reactive
from textual.suggester import Suggester
from textual.widget import Widget
from textual.widgets import Input

from dld_tui.core.dataclass import dataclass
from dld_tui.core.params import (
    OneOf,
    Param,
    RequestData,
    Setting,
    placeholder_text,
    plain_default,
    settings_of,
    text_of,
    value_of,
)
from dld_tui.core.text import cell_width, fit, visible
from dld_tui.core.types import JSON
from dld_tui.widgets.forms.path_input import complete, find_matches
from dld_tui.widgets.forms.text_field import TextField, drawn
from dld_tui.widgets.lists.styled import Piece, Rows, wrap
from dld_tui.widgets.shell import glyphs
from dld_tui.widgets.tasks import on_thread

_LABEL = 21
"""Cells of a label, with the mark of the focused one before it and a blank behind it."""
LABEL_CELLS = _LABEL - 2
"""The longest label."""
_NOTE = 13
"""Cells of the note on a value at least, so that the ends of most fields are below each other."""
_HELP_ROWS, _LOW_ROWS = 3, 11
"""Rows of the help below the fields, and those of a form that leaves it one."""
_NARROW = 56
"""Columns of a form that cuts its labels, and has notes only on what is wrong."""
_WIDE, _HELP_COLUMNS = 100, 38
"""Columns from which the help is beside the fields, and its own."""
_MANY_ROWS = 30
"""Settings of a form that is made page by page."""


class LabelledRow(Horizontal):
    """A label and a control; the row with the focus has the mark of a list's cursor."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down", "next_row(1)", "next field", show=False),
        Binding("up", "next_row(-1)", "previous field", show=False),
    ]

    def __init__(self, title: str, field: Widget, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.title, self.field = title, field
        self.label = Rows([[]], classes="label")

    def compose(self) -> ComposeResult:
        yield self.label
        yield self.field

    def on_mount(self) -> None:
        """Show the label."""
        self._show_label()

    def action_next_row(self, step: int) -> None:
        step_focus(self, step)

    @property
    def _label_style(self) -> str:
        return "dim"

    def _show_label(self) -> None:
        mark = glyphs.current().cursor if self.has_focus_within else " "
        label = fit(self.title, (self.label.size.width or _LABEL) - 2)
        self.label.set_rows([[(mark, "accent"), (label, self._label_style)]])

    def on_resize(self) -> None:
        """Cut the label again."""
        self._show_label()

    def on_descendant_focus(self) -> None:
        """Mark the row."""
        self._show_label()

    def on_descendant_blur(self) -> None:
        """Mark it no longer."""
        self._show_label()


class FieldRow(LabelledRow):
    """A setting: a label, a control, and its unit or what is wrong with it."""

    def __init__(self, setting: Setting, text: str, why_not: str | None) -> None:
        super().__init__(setting.param.label, field_for(setting, text))
        self.setting = setting
        self.why_not = why_not
        """Why it cannot be set; empty where there is nothing to set, so that it is not there."""
        self.remark = ""
        """A remark on the value; shown if there is no error."""
        self.suggested: Sequence[str] = ()
        """What Enter fills in where the field is empty."""
        self.note = Rows([[]], classes="note")
        self.set_class(setting.required, "-required")
        self._follow_why_not()

    def compose(self) -> ComposeResult:
        yield from super().compose()
        yield self.note

    def on_mount(self) -> None:
        """Show the label, and what there is to say of the value."""
        super().on_mount()
        self.show_problem(self.problem)

    @property
    def _label_style(self) -> str:
        return "faint" if self.why_not else "dim"

    @property
    def text(self) -> str:
        return field_text(self.field)

    @text.setter
    def text(self, text: str) -> None:
        if isinstance(self.field, SwitchField):
            self.field.value = "on" if text == "True" else "off"
        elif isinstance(self.field, (ChoiceField, Input)):
            self.field.value = text

    def set_why_not(self, why_not: str | None) -> None:
        """Grey the setting for a reason, take it away for none, or free it."""
        if why_not != self.why_not:
            self.why_not = why_not
            self._follow_why_not()
            self._show_label()

    def _follow_why_not(self) -> None:
        self.field.disabled = self.why_not is not None
        self.display = self.why_not != ""
        self.set_class(bool(self.why_not), "-greyed")

    @property
    def problem(self) -> str | None:
        """What is wrong with the value, where it counts."""
        return self.value()[1] if self.why_not is None else None

    def value(self) -> tuple[JSON, str | None]:
        """Return (value, what is wrong or None); that of what cannot be set is the default."""
        if self.why_not is not None and not self.setting.required:
            return plain_default(self.setting), None
        if isinstance(self.field, SwitchField):
            return self.field.value == "on", None
        return value_of(self.setting, self.text)

    def show_effective(self, values: Mapping[str, JSON], *, here: bool) -> None:
        """Show what an empty field, or a value such as 0 for all, stands for.

        Args:
            values: What the form has.
            here: Whether the job runs on this machine.
        """
        setting = self.setting
        if isinstance(self.field, Input):
            empty = visible(placeholder_text(setting, values))
            if self.suggested:
                empty = f"{visible(text_of(setting, [*self.suggested]))} (guessed)"
            self.field.placeholder = glyphs.shown(empty)
        if setting.param.means is not None:
            self.remark = setting.param.means(values.get(setting.name), values, here)

    def show_problem(self, problem: str | None) -> None:
        """Show what is wrong, or the unit."""
        said = self.remark or self.setting.param.unit
        is_default = not (self.setting.required or self.suggested or self.remark) and (
            self.text in ("", _text(self.setting, {}))
        )
        texts = filter(None, (said, "default" if is_default else ""))
        note: list[Piece] = [(f" {'  '.join(texts):>{_NOTE - 2}} ", "dim")]
        if self.why_not:
            note = [(f" {self.why_not}", "dim")]
        elif problem:
            note = [(f" {glyphs.current().error} {problem}", "bad")]
        self.note.set_rows([note])
        self.note.styles.width = sum(cell_width(text) for text, _ in note)
        self.set_class(bool(problem), "-wrong")


class PageRow(Rows, can_focus=False):
    """The names of the pages; a click shows one."""

    def content(self, width: int) -> list[list[Piece]]:
        pieces: list[Piece] = []
        for name, text in self._names(width):
            mine = name == self.form.page
            pieces.append((text, "accent strong" if mine else "dim"))
            if self.form.page_is_wrong(name):
                pieces.append((glyphs.current().error, "bad"))
        return [pieces]

    @property
    def form(self) -> ParamForm:
        """The form."""
        form = self.parent
        assert isinstance(form, ParamForm)
        return form

    def _names(self, width: int) -> list[tuple[str, str]]:
        """Return pages and their texts; closer together, then without the first, where needed."""
        pages, shown = self.form.shown_pages, self.form.page
        wrong = sum(map(self.form.page_is_wrong, pages))
        is_wide = sum(len(name) + 4 for name in pages) + wrong <= width
        gap = " " if is_wide else ""
        texts = [
            (name, f"[{gap}{name}{gap}]" if name == shown else f" {gap}{name}{gap} ")
            for name in pages
        ]
        first, at = 0, pages.index(shown) if shown in pages else 0
        while first < at and wrong + sum(len(text) for _, text in texts[first : at + 2]) > width:
            first += 1
        return texts[first:]

    def on_click(self, event: events.Click) -> None:
        """Show the page that was clicked."""
        left = 0
        for name, text in self._names(self.size.width):
            left += len(text) + self.form.page_is_wrong(name)
            if event.x < left:
                self.form.show_page(name)
                return


class ParamForm(Vertical):
    """The settings of a request class with values from JSON data.

    Tab goes from the last field of a page on to the next page.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "next_field(1)", show=False),
        Binding("shift+tab", "next_field(-1)", show=False),
    ]

    @dataclass
    class Edited(Message):
        """A field has another value."""

        form: ParamForm

    def __init__(
        self,
        request: type[Any] | Sequence[Setting],
        values: Mapping[str, JSON],
        reasons: Mapping[str, str] | None = None,
        *,
        id: str | None = None,
    ) -> None:
        """Create the form; `reasons` are why some settings, by name, are unavailable here."""
        super().__init__(id=id)
        declared = settings_of(request) if isinstance(request, type) else request
        self.settings = tuple(s for s in declared if not s.param.internal)
        self._reasons = reasons or {}
        self._flags = _flags_of(self.settings)
        asked = _asked(self.settings)
        values = self._answered(values)
        self.pages = tuple(dict.fromkeys(setting.param.page for setting in asked))
        self.page = self.pages[0]
        self.rows = {
            setting.name: FieldRow(setting, _text(setting, values), self._reasons.get(setting.name))
            for setting in asked
        }
        self.here = True
        """Whether what it asks for runs on this machine."""
        self._wrong: set[str] = set()
        self._help = ""

    def compose(self) -> ComposeResult:
        if len(self.pages) > 1:
            yield PageRow([[]])
        for number, page in enumerate(self.pages):
            # Rows take long to make: those of another page of a large form when it is first shown.
            is_now = page == self.page or len(self.rows) <= _MANY_ROWS
            rows = self._rows_of(page) if is_now else []
            with VerticalScroll(*rows, id=f"page-{number}", can_focus=False) as box:
                box.display = page == self.page
        yield Rows([[]] * _HELP_ROWS, id="field-help")

    def on_mount(self) -> None:
        """Check what was given, and begin where there is something to set."""
        self.check()
        self._show_pages()

    def focus_first(self) -> None:
        """Go to the first field of the page, or to the first that is wrong."""
        rows = [row for row in self._rows_of(self.page) if row.why_not is None]
        wrong = [row for row in rows if row.setting.name in self._wrong]
        for row in (wrong or rows)[:1]:
            if row.is_attached:  # else it is being made, and this is called again when it is there
                # Now, not when the loop comes to it: what is typed next is for this field.
                self.screen.set_focus(row.field)
                self.call_after_refresh(self._scroll_to_focused)

    # Pages

    @property
    def shown_pages(self) -> tuple[str, ...]:
        """The pages with something to set; the first one where there is none."""
        filled = {row.setting.param.page for row in self.rows.values() if row.why_not is None}
        return tuple(page for page in self.pages if page in filled) or self.pages[:1]

    def show_page(self, name: str) -> None:
        """Show a page and go to its first field."""
        self.page = name
        for number, page in enumerate(self.pages):
            self.query_one(f"#page-{number}").display = page == name
        for row in self.query(PageRow):
            row.refresh()
        rows = [row for row in self._rows_of(name) if row.parent is None]
        if rows:
            self.screen.set_focus(None)  # what is typed now is not for the page before
            self.query_one(f"#page-{self.pages.index(name)}").mount(*rows)
            self.call_after_refresh(self.focus_first)
        else:
            self.focus_first()

    def _show_pages(self) -> None:
        for names in self.query(PageRow):
            names.display = len(self.shown_pages) > 1
            names.refresh()
        if self.page not in self.shown_pages:
            self.show_page(self.shown_pages[0])

    def _rows_of(self, page: str) -> list[FieldRow]:
        return [row for row in self.rows.values() if row.setting.param.page == page]

    def action_next_field(self, step: int) -> None:
        """Go to the next or the previous field, also of another page; past the last one, out."""
        here = [row.field for row in self._rows_of(self.page) if row.field.focusable]
        edge = here[-1 if step > 0 else 0] if here else None
        is_outermost = self.page == self.shown_pages[-1 if step > 0 else 0]
        leads_out = is_outermost and any(self not in w.ancestors for w in self.screen.focus_chain)
        if self.screen.focused is not edge or leads_out or len(self.shown_pages) == 1:
            (self.screen.focus_next if step > 0 else self.screen.focus_previous)()
            return
        self.step_page(step)
        fields = [row.field for row in self._rows_of(self.page) if row.field.focusable]
        if step < 0 and fields:
            self.screen.set_focus(fields[-1])

    def step_page(self, step: int) -> None:
        """Show the next or the previous page."""
        pages = self.shown_pages
        at = pages.index(self.page) if self.page in pages else -1
        self.show_page(pages[(at + step) % len(pages)])

    def page_is_wrong(self, name: str) -> bool:
        """Return whether a field of the page has an error."""
        return any(self.rows[key].setting.param.page == name for key in self._wrong)

    # Values

    @property
    def valid(self) -> bool:
        """True when no field has an error."""
        return not self._wrong

    def values(self) -> RequestData:
        """Return the values of all fields as JSON data; those with an error are None."""
        data = RequestData({name: row.value()[0] for name, row in self.rows.items()})
        for question, flags in self._flags.items():
            answer = data.pop(question.label)
            data |= {name: answer == label for name, label in flags.items()}
        data.settings = self.settings
        return data

    def set_values(self, values: Mapping[str, JSON]) -> None:
        """Fill the fields that are named."""
        for name, value in self._answered(values).items():
            if name in self.rows:
                self.rows[name].text = text_of(self.rows[name].setting, value)
        self.check()

    def _answered(self, values: Mapping[str, JSON]) -> dict[str, JSON]:
        """Return values with the answers to questions in place of their flags."""
        answered = dict(values)
        for question, flags in self._flags.items():
            given = [answered.pop(name) for name in flags if name in values]
            labels = (label for name, label in flags.items() if values.get(name))
            if given:
                answered[question.label] = next(labels, question.otherwise)
        return answered

    def set_reasons(self, reasons: Mapping[str, str]) -> None:
        """Grey the settings that cannot be set, by name, and free the others.

        A setting with an empty reason is not there.
        """
        self._reasons = reasons
        if self._apply_reasons(self.values()):
            self.check()

    def _apply_reasons(self, values: Mapping[str, JSON]) -> bool:
        """Take away, grey and free rows; return whether there was something to do."""
        changed = False
        for name, row in self.rows.items():
            why_not, applies = self._reasons.get(name), row.setting.param.applies
            if applies is not None and not applies(values):
                why_not = ""
            changed |= why_not != row.why_not
            row.set_why_not(why_not)
        return changed

    def set_remarks(self, remarks: Mapping[str, str]) -> None:
        """Show remarks on some values, by the names of their settings."""
        for name, remark in remarks.items():
            row = self.rows[name]
            if row.remark != remark:
                row.remark = remark
                row.show_problem(row.problem)

    def reset(self) -> None:
        """Set every field that has a default back to it."""
        self.set_back(self.rows)

    def set_back(self, names: Iterable[str]) -> None:
        """Set the fields that are named back to their defaults, where they have one."""
        for row in [self.rows[name] for name in names]:
            if not row.setting.required:
                row.text = _text(row.setting, {})
        self.check()

    def set_here(self, here: bool) -> None:
        """Say whether it is to run on this machine."""
        if here is not self.here:
            self.here = here
            self.check()

    def check(self) -> None:
        """Show what is wrong with each field, and what the others stand for."""
        before, self._wrong = self._wrong, set()
        pages = self.shown_pages
        values = self.values()
        for _ in self.rows:  # what is taken away may take others away
            if not self._apply_reasons(values):
                break
            values = self.values()
        for name, row in self.rows.items():
            row.show_effective(values, here=self.here)
            problem = row.problem
            row.show_problem(problem)
            if problem:
                self._wrong.add(name)
        if before != self._wrong or pages != self.shown_pages:
            self._show_pages()
        self.post_message(self.Edited(self))

    def on_input_changed(self, event: Input.Changed) -> None:
        """Check what is typed."""
        event.stop()
        self.check()

    def on_choice_field_changed(self, event: ChoiceField.Changed) -> None:
        """Post that another value was chosen."""
        event.stop()
        self.check()

    def suggest(self, name: str, values: list[str]) -> None:
        """Offer values of a setting, which Enter fills in where the field is empty."""
        row = self.rows[name]
        row.suggested = values
        row.show_effective(self.values(), here=self.here)
        row.show_problem(row.problem)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Fill in what is offered, or go to the next field."""
        event.stop()
        row = _row_of(event.input)
        if row is not None and row.suggested and not row.text:
            row.text = text_of(row.setting, [*row.suggested])
            event.input.cursor_position = len(row.text)
            return
        self.screen.focus_next()

    def _show_help(self) -> None:
        width, height = self.size
        is_wide, is_low = width >= _WIDE, height <= _LOW_ROWS
        self.set_class(is_wide, "-wide")
        self.set_class(width < _NARROW, "-narrow")
        self.set_class(is_low, "-low")
        rows = height if is_wide else 1 if is_low else _HELP_ROWS
        lines = wrap(self._help, _HELP_COLUMNS if is_wide else max(20, width))[:rows]
        lines += [""] * (rows - len(lines))
        self.query_one("#field-help", Rows).set_rows([[(line, "dim")] for line in lines])

    def on_resize(self) -> None:
        """Break the help again, put it where there is room, and keep the field in sight."""
        self._show_help()
        self.call_after_refresh(self._scroll_to_focused)

    def _scroll_to_focused(self) -> None:
        focused = self.screen.focused if self.is_attached else None
        if focused is not None and self in focused.ancestors:
            focused.scroll_visible(animate=False)

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Explain the field under the help line, and show its page."""
        row = _row_of(event.widget)
        if row is None:
            return
        about = row.setting.param
        self._help = about.help
        self._show_help()
        # The news of a focus may come when another page was asked for meanwhile: that one stays.
        if about.page != self.page and self.screen.focused is event.widget:
            self.show_page(about.page)


def _flags_of(settings: Iterable[Setting]) -> dict[OneOf, dict[str, str]]:
    """Return the flags, and the answer that each stands for, by the question that they answer."""
    flags: dict[OneOf, dict[str, str]] = {}
    for setting in settings:
        if (question := setting.param.one_of) is not None:
            flags.setdefault(question, {})[setting.name] = setting.param.label
    return flags


def _asked(settings: Sequence[Setting]) -> list[Setting]:
    """Return the settings as a form asks for them: flags of one question are one choice."""
    flags = _flags_of(settings)
    asked: dict[str, Setting] = {}
    for setting in settings:
        question = setting.param.one_of
        name = setting.name if question is None else question.label
        asked.setdefault(name, setting if question is None else _choice(question, flags[question]))
    return list(asked.values())


def _choice(question: OneOf, flags: Mapping[str, str]) -> Setting:
    answers = (question.first, *flags.values(), question.otherwise)
    about = Param(question.label, question.help, choices=tuple(dict.fromkeys(answers)))
    return Setting(question.label, str, optional=False, default=question.first, param=about)


def _text(setting: Setting, values: Mapping[str, JSON]) -> str:
    if setting.name in values:
        return text_of(setting, values[setting.name])
    if setting.required:
        return ""
    default = setting.default
    return text_of(setting, list(default) if isinstance(default, tuple) else default)


def _row_of(widget: Widget) -> FieldRow | None:
    return widget.parent if isinstance(widget.parent, FieldRow) else None


def step_focus(widget: Widget, step: int) -> None:
    """Go to the field after or before the focused one, but not round."""
    chain = widget.screen.focus_chain
    focused = widget.screen.focused
    at = chain.index(focused) + step if focused in chain else -1
    if 0 <= at < len(chain):
        widget.screen.set_focus(chain[at])  # at once: another key may wait already


class ChoiceField(Rows, can_focus=True):
    """One of a few values: left and right (or a click) change it; space goes to the next."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,l,space,enter", "step(1)", show=False),
        Binding("left,h", "step(-1)", show=False),
        Binding("down,j", "next_field(1)", show=False),
        Binding("up,k", "next_field(-1)", show=False),
    ]
    value: reactive[str] = reactive("", repaint=False)

    @dataclass
    class Changed(Message):
        """Another value was chosen."""

        field: ChoiceField
        value: str

    def __init__(self, choices: Sequence[str], value: str) -> None:
        super().__init__()
        self.choices = tuple(choices)
        self.set_reactive(ChoiceField.value, value)

    def content(self, width: int) -> Sequence[Sequence[Piece]]:
        """Return all choices in one row when they fit, else the chosen one between arrows."""
        shown = glyphs.current()
        if sum(len(choice) + 6 for choice in self.choices) <= width:
            pieces: list[Piece] = []
            for choice in self.choices:
                mine = choice == self.value
                mark = shown.chosen if mine else shown.unchosen
                pieces += [(f"{mark} ", "accent" if mine else "dim")]
                pieces += [(f"{choice}  ", "" if mine else "dim")]
            return [pieces]
        at = self.choices.index(self.value) + 1 if self.value in self.choices else 0
        many = f" {shown.right}  {at} of {len(self.choices)}"
        return [[(f"{shown.left} ", "dim"), (self.value, ""), (many, "dim")]]

    def watch_value(self) -> None:
        """Show and tell the value."""
        self.refresh()
        self.post_message(self.Changed(self, self.value))

    def action_next_field(self, step: int) -> None:
        step_focus(self, step)

    def action_step(self, step: int) -> None:
        at = self.choices.index(self.value) if self.value in self.choices else -1
        self.value = self.choices[(at + step) % len(self.choices)]

    def on_click(self, event: events.Click) -> None:
        """Choose what was clicked."""
        self.focus()
        left = 0
        for choice in self.choices:
            left += len(choice) + 6
            if event.x < left:
                self.value = choice
                return


class SwitchField(ChoiceField):
    """On or off."""

    def __init__(self, value: bool) -> None:
        super().__init__(("on", "off"), "on" if value else "off")

    def content(self, width: int) -> Sequence[Sequence[Piece]]:
        shown = glyphs.current()
        is_on = self.value == "on"
        return [[(shown.on if is_on else shown.off, "accent" if is_on else "dim")]]

    def on_click(self, event: events.Click) -> None:
        """Turn it over."""
        self.focus()
        self.action_step(1)


class _Paths(Suggester):
    def __init__(self) -> None:
        super().__init__(use_cache=False, case_sensitive=True)

    async def get_suggestion(self, value: str) -> str | None:
        if not value:
            return None
        matches = await on_thread(find_matches, value)
        longer = complete(value, matches[:1]) if matches else value
        return (
            longer
            if longer != value and longer.startswith(value) and drawn(longer) == longer
            else None
        )


def field_for(setting: Setting, text: str) -> Widget:
    """Return the control that suits a setting."""
    about = setting.param
    if setting.type is bool:
        return SwitchField(text == "True")
    if about.choices:
        return ChoiceField(about.choices, text)
    suggester = _Paths() if about.kind in ("file", "folder", "output") else None
    return TextField(text, suggester=suggester, select_on_focus=True)


def field_text(field: Widget) -> str:
    """Return what is typed or chosen in a control."""
    return str(getattr(field, "value", ""))
