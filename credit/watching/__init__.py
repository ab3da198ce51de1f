"""Numbers of each training step: who earned what, how much of it is noise, and whether methods agree.

    step_numbers   the numbers of one batch, and their lines of text
    log_steps      the numbers of one step's logs
    sinks          where numbers go: a file of JSON lines, TensorBoard, wandb
    following      steps that arrive while a run trains: lines of a metrics file, or logs in a folder

`credit.integrations.Watch` computes these numbers inside a trainer, and the command `credit watch` beside one.
"""
